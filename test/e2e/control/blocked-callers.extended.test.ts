/**
 * Rehearses docs/operate/control.md "Blocked callers" with the shipped programs: Control, a verifier that follows it, and a released
 * verifier that does not know the member `blocked`.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { parse } from 'yaml';
import { generateSigningKey, type SigningKey, signPassport } from '../../../src/protocol/signing.ts';
import type { JsonObject } from '../../../src/protocol/strict-json.ts';
import { ALLOWED, FollowedSite, type FollowingVerifier } from '../../support/control/followed-site.ts';
import { SITE_ID } from '../../support/control/site-declaration.ts';
import { releasesBefore } from '../../support/harness/releases.ts';
import { waitFor } from '../../support/wait.ts';

const BROKER = 'https://broker.shop.example';
const SUBJECT = 'spiffe://shop.example/billing';
const TRUST_DOMAIN = 'shop.example';
const CLIENT = ['--issuer', 'https://control.shop.example/sites/shop-control', '--subject', 'client:billing'];
const SUBJECT_BLOCKED = 'invalid_request_proof/subject_blocked 401';
const HOLDER_BLOCKED = 'invalid_request_proof/holder_blocked 401';

let site: FollowedSite;
let verifier: FollowingVerifier;
let old: FollowingVerifier;
let profileFile: string;
const brokerKey = generateSigningKey('Ed25519');

beforeAll(async () => {
  site = await FollowedSite.start({ targets: ['gateway', 'old'] });
  await declareBroker();
  profileFile = join(site.stage.directory, 'profiles.json');
  const caller = ['--issuer', BROKER, '--subject', SUBJECT, '--out', profileFile];
  await site.stage.ctl('get', 'profiles', '--site', SITE_ID, ...caller);
  const [released] = releasesBefore('0.3.1');
  [verifier, old] = await Promise.all([
    site.startVerifier({ program: undefined, target: 'gateway', replay: 'memory' }),
    site.startVerifier({ program: released?.program, target: 'old', replay: 'memory' }),
  ]);
});

afterAll(async () => site?.stop());

/** The site with a broker of attested workloads, and routes that admit them. */
async function declareBroker(): Promise<void> {
  const file = join(site.stage.directory, 'site.yaml');
  const declared = parse(await readFile(file, 'utf8'));
  const { algorithm: alg, jwk } = brokerKey.publicKey;
  const names = { issuer: BROKER, trust_domain: TRUST_DOMAIN };
  const prefix = `spiffe://${TRUST_DOMAIN}/`;
  const broker = {
    ...names,
    subject_prefixes: [prefix],
    key_binding: 'attested_workload',
    keys: [{ kid: 'bk-1', alg, jwk }],
  };
  const admitted = { ...names, subject_prefix: prefix, required_key_binding: 'attested_workload' };
  const routes = declared.routes.map((route: JsonObject) => ({
    ...route,
    allowed_sources: [...(route.allowed_sources as readonly object[]), admitted],
  }));
  await writeFile(file, JSON.stringify({ ...declared, routes, brokers: [broker] }));
  await site.stage.ctl('apply', '-f', file);
}

interface AttestedCaller {
  readonly key: SigningKey;
  readonly keyFile: string;
  readonly passportFile: string;
}

/** A key with a passport of the broker. */
async function attestedCaller(name: string): Promise<AttestedCaller> {
  const key = generateSigningKey('Ed25519');
  const keyFile = join(site.stage.directory, `${name}.pem`);
  const passportFile = join(site.stage.directory, `${name}.passport`);
  const nowSeconds = Math.floor(Date.now() / 1000);
  const passport = signPassport(
    {
      keyId: 'bk-1',
      issuer: BROKER,
      subject: SUBJECT,
      trustDomain: TRUST_DOMAIN,
      audience: 'https://api.shop.example',
      keyBinding: 'attested_workload',
      holderJwk: key.publicKey.jwk,
      issuedAtSeconds: nowSeconds,
      expiresAtSeconds: nowSeconds + 300,
    },
    brokerKey,
  );
  const pem = key.privateKey.export({ format: 'pem', type: 'pkcs8' });
  await writeFile(keyFile, pem, { mode: 0o600 });
  await writeFile(passportFile, passport, { mode: 0o600 });
  return { key, keyFile, passportFile };
}

const outcomeOf = async ({ keyFile, passportFile }: AttestedCaller, at = verifier): Promise<string> =>
  at.present(await site.sign(keyFile, ['--profile-file', profileFile, '--passport-file', passportFile]));

const awaitOutcome = (caller: AttestedCaller, expected: string) =>
  waitFor(expected, async () => ((await outcomeOf(caller)) === expected ? true : undefined));

const callers = (verb: 'block-caller' | 'unblock-caller', name: readonly string[]) =>
  site.stage.ctl(verb, '--site', SITE_ID, ...name);

describe('a blocked caller', () => {
  it('is denied when every target knows the member, and admitted again', async () => {
    const { keyFile } = await site.stage.enroll('billing');
    const [first, second] = [await attestedCaller('first'), await attestedCaller('second')];
    await site.awaitOutcome(verifier, keyFile, ALLOWED);
    for (const caller of [first, second]) await awaitOutcome(caller, ALLOWED);

    // The released verifier would reject the bundle: Control names it, and publishes nothing.
    const holder = ['--issuer', BROKER, '--holder-thumbprint', first.key.publicKey.thumbprint];
    const held = await callers('block-caller', holder);
    expect(held.waiting_for).toMatchObject([{ name: 'old' }]);
    expect(await site.stage.list('blocked-callers')).toMatchObject([{ waiting_for: [{ name: 'old' }] }]);
    await site.awaitOutcome(old, keyFile, ALLOWED);
    expect(await outcomeOf(first)).toBe(ALLOWED);

    // It is updated: the block is published, a minute after its last request.
    await old.stop();
    old = await site.startVerifier({ program: undefined, target: 'old', replay: 'memory' });
    await awaitOutcome(first, HOLDER_BLOCKED);
    expect(await outcomeOf(second)).toBe(ALLOWED);
    const [listed] = await site.stage.list('blocked-callers');
    expect(listed).not.toHaveProperty('waiting_for');

    const subject = ['--issuer', BROKER, '--subject', SUBJECT];
    for (const name of [subject, CLIENT]) {
      expect(await callers('block-caller', name)).not.toHaveProperty('waiting_for');
    }
    await site.awaitOutcome(verifier, keyFile, SUBJECT_BLOCKED);
    for (const caller of [first, second]) await awaitOutcome(caller, SUBJECT_BLOCKED);

    for (const name of [subject, CLIENT]) await callers('unblock-caller', name);
    await site.awaitOutcome(verifier, keyFile, ALLOWED);
    await awaitOutcome(second, ALLOWED);
    await awaitOutcome(first, HOLDER_BLOCKED);
    await callers('unblock-caller', holder);
    await awaitOutcome(first, ALLOWED);
  });
});
