/** `proofgate conformance` against a real Envoy, which conforms, and against an API that nothing protects. */
import { readFile, writeFile } from 'node:fs/promises';
import { createServer as createHttpServer, request as httpRequest } from 'node:http';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { headerValues } from '../../src/tools/conformance/wire/exchange.ts';
import { startRecordedProxy } from '../e2e/proxy/proxy-fixture.ts';
import { runInProcess } from '../support/cli/in-process.ts';
import { makeCertificates, type TestCertificates } from '../support/harness/certificates.ts';
import { checkoutPath } from '../support/harness/checkout.ts';
import { envoyVersions } from '../support/harness/envoy.ts';
import { type CommandResult, errorCode, runProofgate } from '../support/harness/proofgate-command.ts';
import { tlsEdits } from '../support/harness/tls-edits.ts';
import { startUpstream } from '../support/harness/upstream.ts';
import { useEnvironment } from '../support/site/environment.ts';
import { profileFile } from '../support/site/profile-file.ts';
import { AUTHORITY } from '../support/site/routes.ts';
import { STANDARD_ROUTES } from '../support/site/standard-routes.ts';
import { waitFor } from '../support/wait.ts';

const [version = ''] = envoyVersions.slice(-1);
const environment = useEnvironment(['usual']);
let certificates: TestCertificates;
let files: { readonly key: string; readonly profile: string; readonly ca: string };
beforeAll(async () => {
  certificates = await makeCertificates(AUTHORITY, 'spiffe://shop.example/ns/prod/sa/checkout');
  files = await writeFiles();
});
afterAll(() => certificates.remove());

async function writeFiles(): Promise<typeof files> {
  const { derivedKeys, directory } = environment.site;
  const key = join(directory, 'billing.pem');
  const pem = derivedKeys.dk_billing.privateKey.export({ format: 'pem', type: 'pkcs8' });
  await writeFile(key, pem, { mode: 0o600 });
  const profile = await profileFile(environment.site);
  const ca = join(directory, 'ca.pem');
  await writeFile(ca, certificates.ca.cert);
  return { key, profile, ca };
}

function conformance(
  scheme: 'http' | 'https',
  address: { readonly host: string; readonly port: number },
  more: Readonly<Record<string, string | undefined>> = {},
  run: (args: readonly string[]) => Promise<CommandResult> = runProofgate,
): Promise<CommandResult> {
  const origin = `${scheme}://${AUTHORITY}`;
  const flags = {
    target: `${origin}/v1/orders/4711`,
    'write-target': `${origin}/v1/orders`,
    key: files.key,
    'profile-file': files.profile,
    'connect-to': `${address.host}:${address.port}`,
    ...more,
  };
  return run([
    'conformance',
    ...Object.entries(flags).flatMap(([flag, value]) => (value === undefined ? [] : [`--${flag}`, value])),
  ]);
}

/** Also the passports and proofs that the program signs, which the site does not know. */
const secretsIn = (text: string): readonly string[] => [
  ...environment.site.secrets.foundIn(text),
  ...(text.match(/eyJ[\w-]{10,}|Passport ey|[\w-]{60,}/g) ?? []),
];

describe('a deployment that conforms', () => {
  it('passes, over HTTP/1.1', async () => {
    const gateway = await environment.gateway(version);
    gateway.upstream.clear();
    const { exitCode, stderr, stdout } = await conformance('http', gateway.envoy);
    expect([exitCode, stdout]).toEqual([
      0,
      expect.stringMatching(
        /^HTTP\/1\.1: \d{3} cases, \d{3} denied as expected, \d+ for another reason, \d+ rejected as HTTP, 0 failed\nconforms: every case was denied$/,
      ),
    ]);
    expect(stderr).toContain('one request must be allowed');
    expect(gateway.upstream.requests.map(({ url }) => url)).toEqual(['/v1/orders/4711']);
    expect(secretsIn(stdout + stderr)).toEqual([]);
  });
});

it('passes on a route with passport_header, whose Authorization belongs to the application', async () => {
  const gateway = await environment.gateway(version);
  gateway.upstream.clear();
  const token = 'Bearer of-the-application';
  const more = {
    target: `http://${AUTHORITY}/v1/bearer`,
    'write-target': undefined,
    header: `Authorization: ${token}`,
  };
  const { exitCode, stderr, stdout } = await conformance('http', gateway.envoy, more);
  expect([exitCode, stdout]).toEqual([0, expect.stringContaining('conforms: every case was denied')]);
  expect(gateway.upstream.requests.map(({ headers }) => headerValues(headers, 'authorization'))).toEqual([
    [token],
  ]);
  expect(stdout + stderr).not.toContain('of-the-application');
  expect(secretsIn(stdout + stderr)).toEqual([]);
});

it.each(['docs/operate/cli.md', 'docs/reference/conformance.md'])(
  'the command of %s runs as documented, over TLS in both protocols',
  async (document) => {
    const page = await readFile(checkoutPath(document), 'utf8');
    const line = /`proofgate (conformance [^`]*)`/.exec(page)?.[1] ?? '';
    const words = line.split(' ').map((word) => (word === 'key.pem' ? files.key : word));
    const tls = { ca: certificates.ca.cert, servername: AUTHORITY };
    const variant = { name: 'tls', tls, edits: tlsEdits(certificates) };
    const { envoy } = await environment.gateway(version, 'usual', variant);
    const added = ['--profile-file', files.profile, '--ca-file', files.ca, '--output', 'json'];
    const run = await runProofgate([...words, ...added, '--connect-to', `${envoy.host}:${envoy.port}`]);
    const result: { conforms: boolean; results: { protocol: string }[] } = JSON.parse(run.stdout);
    expect([run.exitCode, result.conforms]).toEqual([0, true]);
    expect(new Set(result.results.map(({ protocol }) => protocol))).toEqual(new Set(['HTTP/1.1', 'HTTP/2']));
    expect(secretsIn(run.stdout + run.stderr)).toEqual([]);
  },
);

it('an API that nothing protects fails, with a line for each case', async () => {
  const upstream = await startUpstream();
  try {
    const { exitCode, stdout } = await conformance('http', upstream);
    expect(exitCode).toBe(3);
    expect(stdout).toContain('FAIL HTTP/1.1 jti_replay: the allowed request again: was not denied (200)');
    expect(stdout).toMatch(/^FAIL .*path_not_canonical$/m);
    expect(stdout).toMatch(/does not conform: \d{3} failures$/);
    expect(secretsIn(stdout)).toEqual([]);
  } finally {
    await upstream.stop();
  }
});

it.each(['http-message-signatures', 'dpop'])('finds an API that verifies no %s', async (proof) => {
  const upstream = await startUpstream();
  try {
    const { exitCode, stdout } = await conformance('http', upstream, { proof }, runInProcess);
    expect(exitCode).toBe(3);
    expect(stdout).toMatch(new RegExp(`^FAIL HTTP/1.1 ${proof}.*: was not denied \\(200\\)`, 'm'));
    expect(stdout).toMatch(/ 0 denied as expected, 0 for another reason/);
    expect(secretsIn(stdout)).toEqual([]);
  } finally {
    await upstream.stop();
  }
});

it.each([
  ['accept-signature', 'http-message-signatures', '/v1/standard/4711'],
  ['www-authenticate', 'dpop', '/v1/standard/4711'],
])('finds a gateway that drops %s of a denial', async (dropped, proof, target) => {
  const { site } = environment;
  const routes = Object.values(STANDARD_ROUTES);
  const bundleDirectory = await site.makeBundle({ moreRoutes: routes });
  const { address, stop } = await startRecordedProxy(site, { bundleDirectory });
  const relay = createHttpServer((request, response) => {
    const { headers, method, rawHeaders, url: path } = request;
    const sent = httpRequest({ ...address, method, path, headers: rawHeaders }, (answer) => {
      const lines = { ...answer.headers };
      delete lines[dropped];
      response.writeHead(answer.statusCode ?? 500, lines);
      answer.pipe(response);
    });
    if (headers['content-length'] === undefined) sent.end();
    else request.pipe(sent);
  });
  await new Promise<void>((resolve) => relay.listen(0, '127.0.0.1', resolve));
  try {
    const bound = relay.address();
    const port = typeof bound === 'object' ? (bound?.port ?? 0) : 0;
    const flags = {
      proof,
      target: `http://${AUTHORITY}${target}`,
      'write-target': `http://${AUTHORITY}/v1/standard`,
      'profile-file': await profileFile(site, routes),
    };
    const run = await waitFor('an allowed request', async () => {
      const found = await conformance('http', { host: '127.0.0.1', port }, flags, runInProcess);
      return errorCode(found) === 'target_not_allowed' ? undefined : found;
    });
    expect(run.exitCode).toBe(3);
    expect(run.stdout).toContain('was denied without the headers that say what the route requires');
    expect(run.stdout).not.toContain('was not denied');
  } finally {
    relay.closeAllConnections();
    await new Promise((resolve) => relay.close(resolve));
    await stop();
  }
});

it.each([
  ['a route that the key may not use', { target: `http://${AUTHORITY}/v1/payroll` }, 'profile_not_found', 2],
  ['a path without a segment', { target: `http://${AUTHORITY}/` }, 'target_unsuitable', 2],
  ['two origins', { 'write-target': `https://${AUTHORITY}/v1/orders` }, 'target_unsuitable', 2],
  ['a token where the passport is', { header: 'Authorization: Bearer 1' }, 'header_reserved', 2],
  ['one method for both', { 'write-method': 'GET' }, 'same_method', 2],
  ['an address where nothing listens', { 'connect-to': '127.0.0.1:1' }, 'unreachable', 5],
] as const)('stops at %s', async (_what, flags, code, exitCode) => {
  const { envoy } = await environment.gateway(version);
  const result = await conformance('http', envoy, flags, runInProcess);
  expect([errorCode(result), result.exitCode]).toEqual([code, exitCode]);
});

it('stops where the answer is not HTTP', async () => {
  const server = createServer((socket) => socket.resume().end('220 mail.shop.example\r\n\r\n'));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = typeof address === 'object' ? (address?.port ?? 0) : 0;
  const result = await conformance('http', { host: '127.0.0.1', port }, {}, runInProcess);
  await new Promise((resolve) => server.close(resolve));
  expect([errorCode(result), result.exitCode]).toEqual(['target_not_allowed', 3]);
});

it('stops where the signed request is not allowed', async () => {
  const { envoy } = await environment.gateway(version);
  const profile = join(environment.site.directory, 'wrong.json');
  const text = await readFile(files.profile, 'utf8');
  await writeFile(profile, text.replace('dk_billing', 'dk_other'));
  const result = await conformance('http', envoy, { 'profile-file': profile }, runInProcess);
  expect([errorCode(result), result.exitCode]).toEqual(['target_not_allowed', 3]);
  expect(result.stderr).toContain('401 invalid_request_proof/key_unknown');
});
