/** Tests `ctl broker-keys refresh` and `ctl get brokers` against Control's API and a server in the place of a broker. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { PublicKey } from '../../src/protocol/public-key.ts';
import { runInProcess } from '../support/cli/in-process.ts';
import { type CliRun, expectNoStackTrace } from '../support/cli/run-cli.ts';
import { ApiFixture } from '../support/control/api-fixture.ts';
import {
  type BrokerKeyServer,
  publishedKey,
  startBrokerKeyServer,
} from '../support/fakes/broker-key-server.ts';
import { newSigningKey } from '../support/fixtures/bundle-content.ts';

const ISSUER = 'https://broker.shop.example';

let control: ApiFixture;
let tokenFile: string;
let broker: BrokerKeyServer;
let siteId: string;
let sites = 0;

beforeAll(async () => {
  control = await ApiFixture.open();
  tokenFile = join(control.directory, 'token');
  await writeFile(tokenFile, control.root, { mode: 0o600 });
});
afterAll(async () => control?.close());
beforeEach(async () => {
  broker = await startBrokerKeyServer(ISSUER);
  ({ siteId } = await control.shop(`keys-${++sites}`));
});
afterEach(async () => broker.close());

const pathOf = (trustDomain: string) =>
  `/v1/sites/${siteId}/brokers/${encodeURIComponent(ISSUER)}/${trustDomain}`;
const newKey = () => newSigningKey().publicKey;
const entry = (kid: string, { algorithm, jwk }: PublicKey, more: object = {}) => ({
  ...{ kid, alg: algorithm, jwk },
  ...more,
});

async function declare(trustDomain: string, keys: readonly object[], more: object = { url: broker.url }) {
  const definition = {
    trust_domain: trustDomain,
    subject_prefixes: [`spiffe://${trustDomain}/`],
    key_binding: 'attested_workload',
    keys,
  };
  await control.expect(201, 'PUT', pathOf(trustDomain), { body: { definition, ...more } });
}

function ctl(...args: readonly string[]): Promise<CliRun> {
  const url = `http://127.0.0.1:${control.port}`;
  return runInProcess(['ctl', ...args, '--control-url', url, '--token-file', tokenFile, '--output', 'json']);
}

/** An error in JSON, and no result. */
function expectCliError(run: CliRun, code: string, exitCode: number): void {
  expectNoStackTrace(run);
  const last = run.stderr.trimEnd().split('\n').at(-1) ?? '';
  expect([JSON.parse(last).error, run.exitCode, run.stdout]).toEqual([code, exitCode, '']);
}

const refresh = (...args: readonly string[]) =>
  ctl('broker-keys', 'refresh', '--site', siteId, '--issuer', ISSUER, ...args);

async function pinnedAt(trustDomain: string): Promise<unknown> {
  const { json } = await control.expect(200, 'GET', pathOf(trustDomain));
  return json.definition;
}

describe('broker-keys refresh', () => {
  it('shows thumbprints added and removed, changes nothing, and pins them with --yes', async () => {
    const [old, next] = [newKey(), newKey()];
    await declare('shop.example', [entry('old', old)]);
    broker.keySet = { body: { keys: [publishedKey('next', next)] } };
    const look = await refresh();
    expect(look.exitCode).toBe(0);
    expect(JSON.parse(look.stdout)).toMatchObject({
      pinned: false,
      added: [{ kid: 'next', alg: 'Ed25519', thumbprint: next.thumbprint }],
      removed: [{ kid: 'old', thumbprint: old.thumbprint }],
      kept: [],
    });
    expect(look.stderr).toContain('not_pinned');
    expect(look.stderr).toContain('no_key_stays');
    expect(await pinnedAt('shop.example')).toMatchObject({ keys: [{ kid: 'old' }] });
    expect(JSON.parse((await refresh('--yes')).stdout)).toMatchObject({ pinned: true });
    expect(await pinnedAt('shop.example')).toMatchObject({ keys: [{ kid: 'next', jwk: next.jwk }] });
    expect(JSON.parse((await refresh('--yes')).stdout)).toMatchObject({
      pinned: false,
      added: [],
      removed: [],
    });
  });

  it('keeps everything else: the times of keys that stay, the URL, prefixes and class', async () => {
    const [kept, next] = [newKey(), newSigningKey('ES256').publicKey];
    await declare('shop.example', [entry('kept', kept, { not_after: '2031-01-01T00:00:00Z' })]);
    broker.keySet = { body: { keys: [publishedKey('next', next), publishedKey('kept', kept)] } };
    const before = await control.expect(200, 'GET', pathOf('shop.example'));
    expect((await refresh('--yes')).stderr).toBe('');
    const after = await control.expect(200, 'GET', pathOf('shop.example'));
    const definition = before.json.definition as { readonly keys: readonly object[] };
    const keys = [...definition.keys, entry('next', next)];
    expect(after.json).toMatchObject({ url: broker.url, definition: { ...definition, keys } });
  });

  it('pins the first keys of a broker that was declared without', async () => {
    await declare('shop.example', []);
    broker.keySet = { body: { keys: [publishedKey('first', newKey())] } };
    expect((await refresh('--yes')).exitCode).toBe(0);
    expect((await control.expect(200, 'GET', pathOf('shop.example'))).json).toMatchObject({
      published: true,
    });
  });

  it('takes the keys of the trust domain only', async () => {
    const [ours, theirs] = [newKey(), newKey()];
    await declare('shop.example', []);
    await declare('partner.example', []);
    const others = [publishedKey('theirs', theirs, { trust_domain: 'partner.example' })];
    const unnamed = publishedKey('unnamed', newKey(), { trust_domain: undefined });
    broker.keySet = { body: { keys: [publishedKey('ours', ours), ...others, unnamed] } };
    expectCliError(await refresh('--yes'), 'trust_domain_required', 2);
    const added = async (trustDomain: string) =>
      JSON.parse((await refresh('--yes', '--trust-domain', trustDomain)).stdout).added;
    expect(await added('shop.example')).toMatchObject([{ kid: 'ours' }]);
    expect(await added('partner.example')).toMatchObject([{ kid: 'theirs' }]);
    expectCliError(await refresh('--trust-domain', 'other.example'), 'broker_unknown', 3);
  });

  it('takes keys that name no trust domain from a broker that has only one here', async () => {
    await declare('shop.example', []);
    const rsa = { kty: 'RSA', kid: 'rsa', n: 'AQAB', e: 'AQAB' };
    const forEncryption = publishedKey('enc', newKey(), { use: 'enc' });
    const unnamed = publishedKey('unnamed', newKey(), { trust_domain: undefined });
    broker.keySet = { body: { keys: [unnamed, rsa, forEncryption] } };
    expect(JSON.parse((await refresh()).stdout).added).toMatchObject([{ kid: 'unnamed' }]);
  });

  it('pins only what was reviewed, when --thumbprint names it', async () => {
    const [reviewed, other] = [newKey(), newKey()];
    await declare('shop.example', []);
    const expected = ['--yes', '--thumbprint', reviewed.thumbprint];
    broker.keySet = { body: { keys: [publishedKey('a', reviewed), publishedKey('b', other)] } };
    expectCliError(await refresh(...expected), 'broker_keys_unexpected', 3);
    broker.keySet = { body: { keys: [publishedKey('b', other)] } };
    expectCliError(await refresh(...expected), 'broker_keys_unexpected', 3);
    expect(await pinnedAt('shop.example')).toMatchObject({ keys: [] });
    broker.keySet = { body: { keys: [publishedKey('a', reviewed)] } };
    expect((await refresh(...expected)).exitCode).toBe(0);
  });

  it('pins a key set of a file for a broker without URL', async () => {
    await declare('shop.example', [], {});
    expectCliError(await refresh(), 'broker_url_missing', 2);
    const file = join(control.directory, 'jwks.json');
    await writeFile(file, 'keys: []');
    expectCliError(await refresh('--jwks-file', file), 'jwks_file_invalid', 2);
    await writeFile(file, JSON.stringify({ keys: [publishedKey('k', newKey())] }));
    expect((await refresh('--jwks-file', file, '--yes')).exitCode).toBe(0);
    expect(await pinnedAt('shop.example')).toMatchObject({ keys: [{ kid: 'k' }] });
    expect(broker.asked).toEqual([]);
  });

  const sound = newKey();
  const withKeys = (...keys: readonly object[]) => ({ body: { keys } });
  const FAULTS: readonly (readonly [
    string,
    Partial<Pick<BrokerKeyServer, 'discovery' | 'keySet'>>,
    string,
    number,
  ])[] = [
    ['another issuer', { discovery: { issuer: `${ISSUER}/` } }, 'broker_issuer_mismatch', 3],
    [
      'a key set elsewhere',
      { discovery: { issuer: ISSUER, jwks_uri: 'http://127.0.0.1:1/jwks.json' } },
      'broker_answer_unexpected',
      5,
    ],
    ['no discovery document', { discovery: [] }, 'broker_answer_unexpected', 5],
    [
      'a redirect',
      { keySet: { status: 302, body: '', location: '/elsewhere' } },
      'broker_answer_unexpected',
      5,
    ],
    ['no JSON', { keySet: { body: '<html>' } }, 'broker_answer_unexpected', 5],
    ['a member twice', { keySet: { body: '{"keys":[],"keys":[]}' } }, 'broker_answer_unexpected', 5],
    ['too much', { keySet: { body: 'x'.repeat(300_000) } }, 'broker_unreachable', 5],
    ['no keys', { keySet: { body: {} } }, 'broker_keys_invalid', 3],
    [
      'no key for the trust domain',
      { keySet: withKeys(publishedKey('k', sound, { trust_domain: 'x' })) },
      'broker_keys_invalid',
      3,
    ],
    [
      'a private key',
      { keySet: withKeys(publishedKey('k', sound, { d: 'A'.repeat(43) })) },
      'broker_keys_invalid',
      3,
    ],
    [
      'a kid twice',
      { keySet: withKeys(publishedKey('k', sound), publishedKey('k', newKey())) },
      'broker_keys_invalid',
      3,
    ],
    [
      'a kid that acts in a terminal',
      { keySet: withKeys(publishedKey('\u001b[31m', sound)) },
      'broker_keys_invalid',
      3,
    ],
    [
      'a point of small order',
      { keySet: withKeys(publishedKey('k', sound, { x: Buffer.alloc(32).toString('base64url') })) },
      'broker_keys_invalid',
      3,
    ],
    [
      'another algorithm than the key’s',
      { keySet: withKeys(publishedKey('k', sound, { alg: 'ES256' })) },
      'broker_keys_invalid',
      3,
    ],
    [
      'too many keys',
      { keySet: withKeys(...Array.from({ length: 65 }, (_, i) => publishedKey(`k${i}`, newKey()))) },
      'broker_keys_invalid',
      3,
    ],
  ];
  it.each(FAULTS)(
    'pins nothing from a broker that answers with %s',
    async (_what, answers, code, exitCode) => {
      await declare('shop.example', []);
      broker.keySet = withKeys(publishedKey('k', sound));
      Object.assign(broker, answers);
      expectCliError(await refresh('--yes'), code, exitCode);
      expect(await pinnedAt('shop.example')).toMatchObject({ keys: [] });
      expect(broker.asked).not.toContain('/elsewhere');
    },
  );

  it('says that the broker does not answer', async () => {
    await declare('shop.example', []);
    await broker.close();
    expectCliError(await refresh('--yes'), 'broker_unreachable', 5);
  });
});

describe('get brokers', () => {
  it('shows each trust domain with the ages of its keys, and one by its trust domain', async () => {
    control.ms = Date.now() - 3 * 24 * 3_600_000;
    await declare('shop.example', [entry('a', newKey())]);
    control.ms = Date.now();
    await declare('partner.example', [entry('b', newKey())], {});
    const url = `http://127.0.0.1:${control.port}`;
    const connection = ['--control-url', url, '--token-file', tokenFile];
    const { stdout } = await runInProcess(['ctl', 'get', 'brokers', '--site', siteId, ...connection]);
    expect(stdout.split('\n').map((line) => line.split(/ {2,}/))).toEqual([
      ['ISSUER', 'TRUST_DOMAIN', 'URL', 'PINNED_KEYS'],
      [ISSUER, 'partner.example', '-', 'b (0m)'],
      [ISSUER, 'shop.example', broker.url, 'a (3d)'],
      [''],
    ]);
    expectCliError(await ctl('get', 'brokers', ISSUER, '--site', siteId), 'broker_ambiguous', 3);
    const one = await ctl('get', 'brokers', ISSUER, '--site', siteId, '--trust-domain', 'shop.example');
    expect(JSON.parse(one.stdout)).toMatchObject({ keys: [{ kid: 'a' }] });
  });
});
