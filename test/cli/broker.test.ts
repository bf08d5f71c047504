/** `sign` and `request` with `--broker-url` and a registered software key, against a broker over real HTTP. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { readSigningKeyFile } from '../../src/process/files/key-files.ts';
import { parsePassport } from '../../src/protocol/passport.ts';
import { parseTranscript } from '../../src/protocol/transcript.ts';
import { verifySignature } from '../../src/protocol/verify-signature.ts';
import { profileDocument, routeDocument } from '../support/caller/signing.ts';
import { LAUNCHER } from '../support/cli/compiled-cli.ts';
import { runInProcess } from '../support/cli/in-process.ts';
import { expectCliError, runCli } from '../support/cli/run-cli.ts';
import { FakeBroker, ISSUER } from '../support/fakes/broker.ts';

const URL = 'https://api.shop.example/v1/orders/7';
const AUDIENCE = 'https://api.shop.example';
const SUBJECT = 'job:nightly';

let folder = '';
let broker: FakeBroker;
const file = (name: string) => join(folder, name);

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'proofgate-broker-cli-'));
  await runInProcess(['keygen', '--out', file('key.pem')]);
});
afterAll(() => rm(folder, { recursive: true, force: true }));
beforeEach(async () => {
  broker = await FakeBroker.start();
  const key = await readSigningKeyFile(file('key.pem'));
  broker.softwareKeys.set(key.publicKey.thumbprint, SUBJECT);
  broker.profiles = [brokerProfiles()];
});
afterEach(() => broker.close());

function brokerProfiles(members: object = {}): object {
  const { key_id: _none, ...document } = profileDocument({ issuer: ISSUER, subject: SUBJECT, ...members });
  return document;
}

function sign(...more: readonly string[]) {
  const flags = ['--key', file('key.pem'), '--broker-url', broker.url, '--out', file('headers.json')];
  return runInProcess(['sign', 'GET', URL, ...flags, '--format', 'json', ...more]);
}

it('signs with a passport and profiles from the broker', async () => {
  expect(await sign()).toMatchObject({ exitCode: 0, stderr: '' });
  const headers: Record<string, string> = JSON.parse(await readFile(file('headers.json'), 'utf8'));
  const jws = headers.Authorization?.replace('Passport ', '') ?? '';
  const passport = parsePassport(jws);
  const key = await readSigningKeyFile(file('key.pem'));
  expect(passport).toMatchObject({
    keyId: broker.keyId,
    claims: { subject: SUBJECT, audience: AUDIENCE, keyBinding: 'software', holderJwk: key.publicKey.jwk },
  });
  const transcript = Buffer.from(headers['X-Proofgate-Transcript'] ?? '', 'base64url');
  const proof = Buffer.from(headers['X-Proofgate-Signature'] ?? '', 'base64url');
  expect(verifySignature(key.publicKey, transcript, proof)).toBe(true);
  expect(parseTranscript(transcript, 'authorization')).toMatchObject({
    issuer: ISSUER,
    subject: SUBJECT,
    routeId: 'orders',
  });
  expect(broker.requests.map(({ path }) => path)).toEqual([
    '/v1/challenges',
    '/v1/profiles',
    '/v1/challenges',
    '/v1/passports',
  ]);
});

it('asks for no profiles when there is a file', async () => {
  await writeFile(file('profile.json'), JSON.stringify(brokerProfiles()));
  expect(await sign('--profile-file', file('profile.json'))).toMatchObject({ exitCode: 0 });
  expect(broker.requests.map(({ path }) => path)).toEqual(['/v1/challenges', '/v1/passports']);
});

it('selects among the files of several sites', async () => {
  const other = [routeDocument({ origins: ['https://other.example'] })];
  broker.profiles = [brokerProfiles({ auth_site: 'shop-us-1', profiles: other }), brokerProfiles()];
  expect(await sign()).toMatchObject({ exitCode: 0 });
  broker.profiles = [brokerProfiles({ auth_site: 'shop-us-1' }), brokerProfiles()];
  expectCliError(await sign(), 'profile_ambiguous', 2);
  broker.profiles = [];
  expectCliError(await sign(), 'profile_not_found', 2);
});

describe('it ends with one line and a code', () => {
  it.each([
    [503, 'overloaded', 'overloaded', 5],
    [429, 'rate_limited', 'rate_limited', 5],
    [403, 'caller_denied', 'caller_denied', 3],
    [404, undefined, 'broker_answer_invalid', 5],
    [200, undefined, 'broker_answer_invalid', 5],
    [302, undefined, 'broker_answer_invalid', 5],
  ])('answer %s %s: %s', async (status, code, expected, exitCode) => {
    broker.interfere = () => (code === undefined ? { status } : { status, code });
    expectCliError(await sign(), expected, exitCode);
  });

  it('nothing listens', async () => {
    const { url } = broker;
    await broker.close();
    const run = await runInProcess([
      'sign',
      'GET',
      URL,
      '--key',
      file('key.pem'),
      '--broker-url',
      url,
      '--out',
      '-',
    ]);
    broker = await FakeBroker.start();
    expectCliError(run, 'unreachable', 5);
  });

  it('a passport for another audience or key', async () => {
    broker.claims = { audience: 'https://other.example' };
    expectCliError(await sign(), 'broker_answer_invalid', 5);
    broker.claims = { holderJwk: broker.signingKey.publicKey.jwk };
    expectCliError(await sign(), 'broker_answer_invalid', 5);
  });

  it('a key that is not registered', async () => {
    broker.softwareKeys.clear();
    expectCliError(await sign(), 'proof_invalid', 3);
  });
});

it('gives up after ten seconds where no SPIFFE agent answers', async () => {
  const flags = ['--broker-url', broker.url, '--spiffe-socket', 'unix:/nonexistent/agent.sock', '--out', '-'];
  expectCliError(
    await runCli(LAUNCHER, ['sign', 'GET', URL, ...flags], { cwd: folder }),
    'workload_api_unavailable',
    5,
  );
});

describe('settings', () => {
  const key = () => ['--key', file('key.pem')];
  const at = (url: string) => ['--broker-url', url];
  it.each([
    ['plain HTTP elsewhere', () => [...key(), ...at('http://broker.shop.example')], 'broker_url_not_https'],
    ['a query', () => [...key(), ...at('https://broker.shop.example/?a')], 'broker_url_invalid'],
    ['no caller', () => at('https://broker.shop.example'), 'caller_required'],
    [
      'two callers',
      () => [...key(), ...at('https://b.example'), '--spiffe-socket', 'unix:/s'],
      'set_key_or_spiffe_socket',
    ],
    [
      'an SVID of a key',
      () => [...key(), ...at('https://b.example'), '--svid-hint', 'a'],
      'spiffe_socket_required',
    ],
    ['no broker', () => [...key(), '--broker-ca-file', 'ca.pem'], 'broker_url_required'],
    [
      'no SPIFFE ID',
      () => [...at('https://b.example'), '--spiffe-socket', 'unix:/s', '--svid-id', 'spiffe://a'],
      'spiffe_id_invalid',
    ],
    [
      'two trusts',
      () => [
        ...at('https://b.example'),
        '--spiffe-socket',
        'unix:/s',
        '--broker-spiffe-id',
        'spiffe://a/b',
        '--broker-ca-file',
        'c',
      ],
      'set_broker_ca_file_or_spiffe_id',
    ],
    [
      'two passports',
      () => [...key(), ...at('https://b.example'), '--passport-file', 'p'],
      'set_passport_file_or_broker_url',
    ],
    ['no key', () => [], 'flag_required'],
  ])('%s', async (_case, flags, code) => {
    expectCliError(await runInProcess(['sign', 'GET', URL, '--out', '-', ...flags()]), code, 2);
  });
});
