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
import { softwareKeysYaml } from '../support/broker/broker-callers.ts';
import {
  type BrokerFolder,
  type BrokerProgram,
  Caller,
  makeBrokerFolder,
  startBrokerProgram,
} from '../support/broker/broker-program.ts';
import { type KeyKind, SpiffeAuthority } from '../support/fakes/spiffe-authority.ts';
import { rawCheckRequest } from '../support/fixtures/check-request.ts';
import { openCheckClient, outcomeOfResponse } from '../support/harness/check-client.ts';
import type { PassportJob } from '../support/interop/job.ts';
import { foreignSigners, getPassport, missingForPassports } from '../support/interop/signers.ts';
import { AUTH_SITE, nowSeconds } from '../support/site/site.ts';
import { startVerifier, type VerifierProcess } from '../support/site/verifier.ts';

const AUDIENCE = 'https://api.shop.example';
const TRUST_DOMAIN = 'shop.example';
const authority = SpiffeAuthority.create(TRUST_DOMAIN);
const registered = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const holder = generateKeyPairSync('ed25519');
/** Registered, and its own holder key. */
const lone = generateKeyPairSync('ed25519');
const stranger = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const ORDERS = 'spiffe://shop.example/ns/prod/sa/orders';

const missing = missingForPassports();
const suite = missing === undefined ? describe : describe.skip;
if (missing !== undefined) process.stdout.write(`passports for Python are not tested: ${missing}\n`);

suite('a caller in Python', () => {
  let folder: BrokerFolder;
  let broker: BrokerProgram;
  let verifier: VerifierProcess;
  let files: Readonly<Record<'ca' | 'holder' | 'lone' | 'registered' | 'stranger', string>>;

  beforeAll(async () => {
    folder = await makeBrokerFolder(authority);
    files = {
      ca: await folder.put('ca.pem', folder.tls.ca.cert),
      holder: await folder.put('holder.pem', pemOf(holder.privateKey)),
      lone: await folder.put('lone.pem', pemOf(lone.privateKey)),
      registered: await folder.put('registered.pem', pemOf(registered.privateKey)),
      stranger: await folder.put('stranger.pem', pemOf(stranger.privateKey)),
    };
    // The bundle as JSON, because PEM has no keys for JWT-SVIDs.
    await folder.put('bundle.pem', JSON.stringify(authority.bundleDocument()));
    const another = `  - { thumbprint: ${thumbprintOf(lone)}, subject: "ci:lone", trust_domain: ${TRUST_DOMAIN} }\n`;
    const softwareKeys = softwareKeysYaml(signingKeyOf(registered.privateKey), 'ci:deploy', another);
    broker = await startBrokerProgram(folder, {
      flags: ['--accept-jwt-svid', '--software-keys', await folder.put('software-keys.yaml', softwareKeys)],
    });
    verifier = await startSite(folder, broker);
  });

  afterAll(async () => {
    await verifier.stop();
    await broker.child.stop();
    await folder.remove();
  });

  const common = () => ({ broker_url: broker.url, ca_file: files.ca, audience: AUDIENCE });

  async function svidFiles(key: KeyKind) {
    const { pem } = authority.issueSvid(ORDERS, { key });
    return {
      svid_file: await folder.put('svid.pem', pem.cert),
      svid_key_file: await folder.put('svid-key.pem', pem.key),
    };
  }

  async function signedForm(key: KeyKind): Promise<PassportJob> {
    return {
      ...{ ...common(), kind: 'signed_form', holder_key_file: files.holder },
      ...(await svidFiles(key)),
    };
  }

  async function jwtSvid(holderThumbprint: string): Promise<PassportJob> {
    const token = await authority.issueJwtSvid(ORDERS, `${broker.url}#jkt=${holderThumbprint}`);
    const token_file = await folder.put('token', token);
    return { ...common(), kind: 'jwt_svid', holder_key_file: files.holder, token_file };
  }

  /** What the verifier answers to a request with the passport. */
  async function outcome(passport: string, routeId: string, holderFile = files.holder): Promise<string> {
    const [python] = foreignSigners();
    const target = `/v1/${routeId}`;
    const signed = await python?.sign({
      holder_key_file: holderFile,
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

  it.each<KeyKind>(['P-256', 'P-384', 'Ed25519', 'RSA-2048'])(
    'with an SVID of %s in the body',
    async (key) => {
      const { key_binding, passport, subject } = await getPassport(await signedForm(key));
      expect([key_binding, subject]).toEqual(['attested_workload', ORDERS]);
      expect(await outcome(passport, 'shared')).toBe('allowed');
      expect(await outcome(passport, 'attested')).toBe('allowed');
    },
  );

  it('with an SVID of Ed25519 as client certificate', async () => {
    const svid = await svidFiles('Ed25519');
    const { key_binding, passport, subject } = await getPassport({ ...common(), kind: 'mtls', ...svid });
    expect([key_binding, subject]).toEqual(['attested_workload', ORDERS]);
    expect(await outcome(passport, 'attested', svid.svid_key_file)).toBe('allowed');
  });

  it('with an SVID of P-256 as client certificate', async () => {
    const job: PassportJob = { ...common(), kind: 'mtls', ...(await svidFiles('P-256')) };
    expect(await getPassport(job)).toMatchObject({ key_binding: 'attested_workload', subject: ORDERS });
  });

  it('with a JWT-SVID for its holder key', async () => {
    const { key_binding, passport, subject } = await getPassport(await jwtSvid(thumbprintOf(holder)));
    expect([key_binding, subject]).toEqual(['attested_workload', ORDERS]);
    expect(await outcome(passport, 'attested')).toBe('allowed');
  });

  it('with a registered software key alone', async () => {
    const job = { ...common(), kind: 'software_key', registered_key_file: files.lone } as const;
    const { key_binding, passport, subject } = await getPassport(job);
    expect([key_binding, subject]).toEqual(['software', 'ci:lone']);
    expect(await outcome(passport, 'shared', files.lone)).toBe('allowed');
  });

  it('with a registered software key that vouches for another', async () => {
    const keys = { registered_key_file: files.registered, holder_key_file: files.holder };
    const job = { ...common(), kind: 'software_key', ...keys } as const;
    const { key_binding, passport, subject } = await getPassport(job);
    expect([key_binding, subject]).toEqual(['software', 'ci:deploy']);
    expect(await outcome(passport, 'shared')).toBe('allowed');
    expect(await outcome(passport, 'attested')).toBe('insufficient_key_binding 403');
  });

  // One program in each case, as each takes seconds to start on a busy machine.
  it.each<readonly [code: string, what: string, job: () => Promise<PassportJob>]>([
    [
      'key_not_registered',
      'a key that is not registered',
      async () => ({ ...common(), kind: 'software_key', registered_key_file: files.stranger }),
    ],
    [
      'svid_signature_invalid',
      'the key of another SVID',
      async () => ({ ...(await signedForm('P-256')), svid_key_file: files.stranger }),
    ],
    ['jwt_svid_audience', 'a JWT-SVID for another holder key', async () => jwtSvid(thumbprintOf(stranger))],
    [
      'holder_key_unsupported',
      'a client certificate with an RSA key',
      async () => ({ ...common(), kind: 'mtls', ...(await svidFiles('RSA-2048')) }),
    ],
  ])('is refused as %s with %s', async (code, _what, job) => {
    await expect(getPassport(await job())).rejects.toThrow(code);
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

function thumbprintOf({ privateKey }: ReturnType<typeof generateKeyPairSync>): string {
  return signingKeyOf(privateKey).publicKey.thumbprint;
}

function pemOf(key: ReturnType<typeof generateKeyPairSync>['privateKey']): string {
  return key.export({ type: 'pkcs8', format: 'pem' }).toString();
}
