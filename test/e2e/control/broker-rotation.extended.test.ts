/**
 * Rehearses docs/operate/control-upkeep.md "Rotating a broker's keys" with the shipped programs: Control, a verifier that follows it, and
 * the broker, while a caller fetches passports and sends requests all the time.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { parse } from 'yaml';
import { isJsonObject, type JsonObject } from '../../../src/protocol/strict-json.ts';
import { softwareKeyProof, softwareKeysYaml } from '../../support/broker/broker-callers.ts';
import {
  type BrokerFolder,
  type BrokerProgram,
  Caller,
  makeBrokerFolder,
  startBrokerProgram,
} from '../../support/broker/broker-program.ts';
import { runInProcess } from '../../support/cli/in-process.ts';
import { ALLOWED, FollowedSite, type FollowingVerifier } from '../../support/control/followed-site.ts';
import { SITE_ID } from '../../support/control/site-declaration.ts';
import { SpiffeAuthority } from '../../support/fakes/spiffe-authority.ts';
import { newSigningKey } from '../../support/fixtures/bundle-content.ts';
import { rawCheckRequest } from '../../support/fixtures/check-request.ts';
import { encodeCheckRequest } from '../../support/harness/check-client.ts';
import { waitFor } from '../../support/wait.ts';

const ISSUER = 'https://broker.shop.example';
const SUBJECT = 'job:nightly';
const TRUST_DOMAIN = 'shop.example';
const URL_TO_SIGN = 'http://api.shop.example/v1/orders/7';

let site: FollowedSite;
let verifier: FollowingVerifier;
let folder: BrokerFolder;
let broker: BrokerProgram;
let caCertificate: string;
let keyFile: string;
let profileFile: string;
let sourcesFile: string;
const registered = newSigningKey();

beforeAll(async () => {
  site = await FollowedSite.start({ targets: ['gateway'] });
  const { directory } = site.stage;
  folder = await makeBrokerFolder(SpiffeAuthority.create(TRUST_DOMAIN));
  const softwareKeys = await folder.put('software-keys.yaml', softwareKeysYaml(registered, SUBJECT));
  const issuer = ['--issuer', ISSUER];
  broker = await startBrokerProgram(folder, { flags: [...issuer, '--software-keys', softwareKeys] });
  caCertificate = join(directory, 'broker-ca.pem');
  await writeFile(caCertificate, folder.tls.ca.cert);
  keyFile = join(directory, 'registered.pem');
  await writeFile(keyFile, registered.privateKey.export({ format: 'pem', type: 'pkcs8' }), { mode: 0o600 });
  sourcesFile = join(directory, 'brokered.json');
  await declareBroker();
  profileFile = join(directory, 'nightly.json');
  const caller = ['--issuer', ISSUER, '--subject', SUBJECT, '--out', profileFile];
  await site.stage.ctl('get', 'profiles', '--site', SITE_ID, ...caller);
  await refresh('--yes');
  verifier = await site.startVerifier({ program: undefined, target: 'gateway', replay: 'memory' });
  await waitFor('a first request', async () => ((await request()) === ALLOWED ? true : undefined));
});

afterAll(async () => {
  await broker?.child.stop();
  await folder?.remove();
  await site?.stop();
});

/** The site with the broker, without keys, and routes that admit its callers. */
async function declareBroker(): Promise<void> {
  const declared = parse(await readFile(join(site.stage.directory, 'site.yaml'), 'utf8'));
  const admitted = {
    issuer: ISSUER,
    trust_domain: TRUST_DOMAIN,
    subject_prefix: 'job:',
    required_key_binding: 'software',
  };
  const routes = declared.routes.map((route: JsonObject) => ({
    ...route,
    allowed_sources: [...(route.allowed_sources as readonly object[]), admitted],
  }));
  const brokers = [
    {
      issuer: ISSUER,
      trust_domain: TRUST_DOMAIN,
      url: broker.url,
      subject_prefixes: ['job:'],
      key_binding: 'software',
    },
  ];
  await writeFile(sourcesFile, JSON.stringify({ ...declared, routes, brokers }));
  expect(await site.stage.ctl('apply', '-f', sourcesFile)).toMatchObject({
    warnings: [{ code: 'broker_without_keys' }],
  });
}

const refresh = (...more: readonly string[]) =>
  site.stage.ctl(
    ...['broker-keys', 'refresh', '--site', SITE_ID, '--issuer', ISSUER],
    ...['--broker-ca-file', caCertificate, ...more],
  );

/** Pins what the broker publishes, and waits as the document says. */
async function pinAndWait(...more: readonly string[]): Promise<JsonObject> {
  const pinned = await refresh('--yes', ...more);
  expect(pinned).toMatchObject({ pinned: true });
  await waitFor('every target to have the bundle', async () => {
    const seen = await site.stage.get(`/v1/sites/${SITE_ID}/propagation`);
    const targets = Array.isArray(seen.targets) ? seen.targets.filter(isJsonObject) : [];
    const isCurrent = targets.length > 0 && targets.every(({ state }) => state === 'current');
    return seen.unpublished_since === undefined && isCurrent ? true : undefined;
  });
  return pinned;
}

/** Outcome of a request with a new passport, or with the one of a file. */
async function request(passportFile?: string): Promise<string> {
  const passport =
    passportFile === undefined
      ? ['--broker-url', broker.url, '--broker-ca-file', caCertificate]
      : ['--passport-file', passportFile];
  const signed = await runInProcess([
    ...['sign', 'GET', URL_TO_SIGN, '--key', keyFile, '--profile-file', profileFile],
    ...[...passport, '--out', '-', '--format', 'json'],
  ]);
  if (signed.exitCode !== 0) throw new Error(`sign: ${signed.stderr}`);
  const headers = Object.entries(JSON.parse(signed.stdout)).map(([name, value]) => ({
    name,
    value: String(value),
  }));
  const target = { scheme: 'http', authority: 'api.shop.example', method: 'GET', target: '/v1/orders/7' };
  return verifier.present(
    encodeCheckRequest(rawCheckRequest({ ...target, headers, body: { kind: 'none' } })),
  );
}

/** Sends requests until it is stopped. @returns a function that stops and gives every outcome */
function keepRequesting(): () => Promise<readonly string[]> {
  const outcomes: string[] = [];
  let isStopped = false;
  const running = (async () => {
    while (!isStopped) outcomes.push(await request());
  })();
  return async () => {
    isStopped = true;
    await running;
    return outcomes;
  };
}

/** A passport in a file, and its key. */
async function keptPassport(name: string): Promise<{ readonly file: string; readonly keyId: string }> {
  const caller = new Caller(folder.tls.ca.cert);
  try {
    const challenged = await caller.call(broker.url, '/v1/challenges', null);
    const proof = softwareKeyProof(String(challenged.body.challenge), registered, undefined, {
      brokerUrl: broker.url,
      audience: 'https://api.shop.example',
    });
    const { body } = await caller.call(broker.url, '/v1/passports', {
      audience: 'https://api.shop.example',
      proof,
    });
    const file = join(site.stage.directory, `${name}.passport`);
    await writeFile(file, String(body.passport), { mode: 0o600 });
    return { file, keyId: String(body.key_id) };
  } finally {
    caller.close();
  }
}

/** Waits until the broker signs with a key. */
async function awaitKeyInUse(kid: string): Promise<void> {
  await waitFor(`passports of ${kid}`, async () =>
    (await keptPassport('probe')).keyId === kid ? true : undefined,
  );
}

/** Waits until the broker publishes exactly these keys. */
async function awaitPublished(...kids: readonly string[]): Promise<void> {
  const caller = new Caller(folder.tls.ca.cert);
  await waitFor(`keys ${kids.join(', ')}`, async () => {
    const { keys } = (await caller.call(broker.url, '/jwks.json')).body as {
      readonly keys: readonly JsonObject[];
    };
    const published = keys.map(({ kid }) => String(kid)).toSorted();
    return JSON.stringify(published) === JSON.stringify([...kids].toSorted()) ? true : undefined;
  }).finally(() => caller.close());
}

describe('a rotation of the key of a broker', () => {
  it('refuses no request, and ends trust in the old key when it is unpinned', async () => {
    const old = await keptPassport('old');
    expect(await request(old.file)).toBe(ALLOWED);
    const stop = keepRequesting();
    const { keyId: next } = await folder.rotate(TRUST_DOMAIN);
    await awaitPublished(old.keyId, next);
    const look = await refresh();
    expect(look).toMatchObject({
      pinned: false,
      added: [{ kid: next }],
      kept: [{ kid: old.keyId }],
      removed: [],
    });
    const [added] = look.added as readonly { readonly thumbprint: string }[];
    await pinAndWait('--thumbprint', String(added?.thumbprint));

    await folder.rotate(TRUST_DOMAIN, { activate: next });
    await awaitKeyInUse(next);
    // Passports of before live on until the old key is unpinned.
    expect(await request(old.file)).toBe(ALLOWED);

    await folder.rotate(TRUST_DOMAIN, { remove: old.keyId });
    await awaitPublished(next);
    expect(await pinAndWait()).toMatchObject({ removed: [{ kid: old.keyId }], kept: [{ kid: next }] });
    expect(await request(old.file)).toBe('invalid_request_proof/key_unknown 401');
    const outcomes = await stop();
    expect(new Set(outcomes)).toEqual(new Set([ALLOWED]));
    expect(outcomes.length).toBeGreaterThan(10);
    expect(await site.stage.list('brokers')).toMatchObject([{ keys: [{ kid: next }] }]);
  });
});
