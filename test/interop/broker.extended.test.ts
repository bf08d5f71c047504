/**
 * A program that shares no code with ours, written from the documents alone, gets passports from the shipped broker; the
 * shipped verifier accepts the requests that another such program signs with them.
 */
import { generateKeyPairSync } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { signBundle } from '../../src/bundle/authoring/authoring.ts';
import { formatTime } from '../../src/protocol/rfc3339.ts';
import { signingKeyOf } from '../../src/protocol/signing.ts';
import { softwareKeysYaml } from '../broker/broker-callers.ts';
import { AUTH_SITE, nowSeconds } from '../e2e/environment/site.ts';
import { startVerifier, type VerifierProcess } from '../e2e/environment/verifier.ts';
import { openCheckClient, outcomeOfResponse } from '../fakes/check-client.ts';
import { rawCheckRequest } from '../fakes/check-request.ts';
import { type KeyKind, SpiffeAuthority } from '../fakes/spiffe-authority.ts';
import {
  type BrokerFolder,
  type BrokerProgram,
  Caller,
  makeBrokerFolder,
  startBrokerProgram,
} from '../main/broker/broker-program.ts';
import type { PassportJob } from './job.ts';
import { foreignSigners, getPassport, missingForPassports } from './signers.ts';

const AUDIENCE = 'https://api.shop.example';
const TRUST_DOMAIN = 'shop.example';
const authority = SpiffeAuthority.create(TRUST_DOMAIN);
const registered = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const holder = generateKeyPairSync('ed25519');
const stranger = generateKeyPairSync('ec', { namedCurve: 'P-256' });

const missing = missingForPassports();
const suite = missing === undefined ? describe : describe.skip;
if (missing !== undefined) process.stdout.write(`passports for Python are not tested: ${missing}\n`);

suite('a caller in Python', () => {
  let folder: BrokerFolder;
  let broker: BrokerProgram;
  let verifier: VerifierProcess;
  let files: Readonly<Record<'ca' | 'holder' | 'registered' | 'stranger', string>>;

  beforeAll(async () => {
    folder = await makeBrokerFolder(authority);
    files = {
      ca: await folder.put('ca.pem', folder.tls.ca.cert),
      holder: await folder.put('holder.pem', pemOf(holder.privateKey)),
      registered: await folder.put('registered.pem', pemOf(registered.privateKey)),
      stranger: await folder.put('stranger.pem', pemOf(stranger.privateKey)),
    };
    const softwareKeys = softwareKeysYaml(signingKeyOf(registered.privateKey));
    broker = await startBrokerProgram(folder, {
      flags: ['--software-keys', await folder.put('software-keys.yaml', softwareKeys)],
    });
    verifier = await startSite(folder, broker);
  }, 60_000);

  afterAll(async () => {
    await verifier.stop();
    await broker.child.stop();
    await folder.remove();
  });

  const common = () => ({
    broker_url: broker.url,
    ca_file: files.ca,
    audience: AUDIENCE,
    holder_key_file: files.holder,
  });

  async function signedForm(key: KeyKind): Promise<PassportJob> {
    const { pem } = authority.issueSvid('/ns/prod/sa/orders', { key });
    return {
      ...common(),
      kind: 'signed_form',
      svid_file: await folder.put('svid.pem', pem.cert),
      svid_key_file: await folder.put('svid-key.pem', pem.key),
    };
  }

  /** What the verifier answers to a request with the passport. */
  async function outcome(passport: string, routeId: string): Promise<string> {
    const [python] = foreignSigners();
    const target = `/v1/${routeId}`;
    const signed = await python?.sign({
      holder_key_file: files.holder,
      passport: { jws: passport },
      auth_site: AUTH_SITE,
      route: { route_id: routeId, audience: AUDIENCE, body: 'bound', signed_headers: [] },
      request: { method: 'GET', url: `${AUDIENCE}${target}`, headers: [], body_base64: '' },
      also_signed: [],
    });
    const client = openCheckClient(addressOf(verifier));
    const headers = Object.entries(signed?.headers ?? {}).map(([name, value]) => ({ name, value }));
    const line = { method: 'GET', scheme: 'https', authority: 'api.shop.example', target };
    try {
      return outcomeOfResponse(
        await client.check(rawCheckRequest({ ...line, headers, body: { kind: 'none' } })),
      );
    } finally {
      client.close();
    }
  }

  it.each<KeyKind>(['P-256', 'P-384', 'Ed25519', 'RSA-2048'])('with an SVID of %s', async (key) => {
    const { key_binding, passport, subject } = await getPassport(await signedForm(key));
    expect([key_binding, subject]).toEqual(['attested_workload', 'spiffe://shop.example/ns/prod/sa/orders']);
    expect(await outcome(passport, 'shared')).toBe('allowed');
    expect(await outcome(passport, 'attested')).toBe('allowed');
  });

  it('with a registered software key that vouches for another', async () => {
    const job = { ...common(), kind: 'software_key', registered_key_file: files.registered } as const;
    const { key_binding, passport, subject } = await getPassport(job);
    expect([key_binding, subject]).toEqual(['software', 'ci:deploy']);
    expect(await outcome(passport, 'shared')).toBe('allowed');
    expect(await outcome(passport, 'attested')).toBe('insufficient_key_binding 403');
  });

  it('is refused with a key that is not registered, and with the key of another SVID', async () => {
    const job = { ...common(), kind: 'software_key', registered_key_file: files.stranger } as const;
    await expect(getPassport(job)).rejects.toThrow('key_not_registered');
    const form = { ...(await signedForm('P-256')), svid_key_file: files.stranger };
    await expect(getPassport(form)).rejects.toThrow('svid_signature_invalid');
  });
});

/** A verifier of a site that trusts the broker, with a route for either class. */
async function startSite(folder: BrokerFolder, broker: BrokerProgram): Promise<VerifierProcess> {
  const signer = signingKeyOf(generateKeyPairSync('ed25519').privateKey);
  const bundleKeyFile = await folder.put('bundle-key.json', JSON.stringify(signer.publicKey.jwk));
  await signBundle({
    yamlText: JSON.stringify(await siteOf(folder, broker)),
    fileName: 'site.yaml',
    signingKeys: [signer],
    outDirectory: join(folder.path, 'bundle'),
    nowSeconds: nowSeconds() - 1,
  });
  return startVerifier(
    { directory: folder.path, bundleKeyFile },
    { bundleDirectory: join(folder.path, 'bundle'), replay: 'memory' },
  );
}

async function siteOf(folder: BrokerFolder, { url }: BrokerProgram): Promise<object> {
  const caller = new Caller(await readFile(join(folder.path, 'ca.pem'), 'utf8'));
  const { body } = await caller.call(url, '/jwks.json');
  caller.close();
  const [published] = Array.isArray(body.keys) ? body.keys : [];
  const { alg, crv, kid, kty, x } = published;
  const source = { issuer: url, trust_domain: TRUST_DOMAIN };
  const route = (route_id: string) => ({
    route_id,
    method: 'GET',
    path_template: `/v1/${route_id}`,
    audience: AUDIENCE,
    freshness_class: 'bounded',
    max_staleness_seconds: 3600,
  });
  return {
    format: 'proofgate.bundle/v1',
    auth_site: AUTH_SITE,
    expires_at: formatTime(nowSeconds() + 3600),
    skew_seconds: 1,
    single_verifier: true,
    origins: [AUDIENCE],
    issuers: [
      {
        ...source,
        subject_prefixes: [`spiffe://${TRUST_DOMAIN}/`, 'ci:'],
        key_binding: 'attested_workload',
        keys: [{ kid, alg, jwk: { kty, crv, x } }],
      },
    ],
    routes: [route('shared'), route('attested')],
    route_sources: ['shared', 'attested'].map((route_id) => ({
      route_id,
      allowed_sources: [`spiffe://${TRUST_DOMAIN}/`, 'ci:'].map((subject_prefix) => ({
        ...source,
        subject_prefix,
        required_key_binding: route_id === 'attested' ? 'attested_workload' : 'software',
      })),
    })),
  };
}

function addressOf({ address }: VerifierProcess): string {
  return address.kind === 'unix' ? `unix:${address.path}` : `${address.host}:${address.port}`;
}

function pemOf(key: ReturnType<typeof generateKeyPairSync>['privateKey']): string {
  return key.export({ type: 'pkcs8', format: 'pem' }).toString();
}
