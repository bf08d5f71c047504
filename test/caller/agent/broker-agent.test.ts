/**
 * The shipped program as `proofgate agent` with a broker, and `request` with its files: the commands of docs/operate/cli.md and
 * docs/operate/workloads.md, with other paths.
 */
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { parseBrokerState } from '../../../src/caller/broker/broker-state.ts';
import { brokerStatePathOf } from '../../../src/caller/broker/broker-state-file.ts';
import { readSigningKeyFile } from '../../../src/process/files/key-files.ts';
import { profileDocument, routeDocument } from '../../support/caller/signing.ts';
import { LAUNCHER } from '../../support/cli/compiled-cli.ts';
import { runInProcess } from '../../support/cli/in-process.ts';
import { expectCliError, runCli } from '../../support/cli/run-cli.ts';
import { readText } from '../../support/docs/markdown.ts';
import { FakeBroker, ISSUER } from '../../support/fakes/broker.ts';
import { type Child, startChild } from '../../support/harness/child.ts';
import { httpGet, waitFor } from '../../support/wait.ts';

const SUBJECT = 'job:nightly';
const AUDIENCES = ['https://api.shop.example', 'https://admin.shop.example'];
let folder = '';
let broker: FakeBroker;
const children: Child[] = [];
const file = (name: string) => join(folder, name);
const keyFile = () => file('keys/key.pem');

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'proofgate-broker-agent-'));
  await mkdir(file('keys'));
  await runInProcess(['keygen', '--out', file('registered.pem')]);
  broker = await startBroker();
});
afterEach(async () => {
  for (const child of children.splice(0)) await child.stop();
  await broker.close();
  await rm(folder, { recursive: true, force: true });
});

async function startBroker(port = 0): Promise<FakeBroker> {
  const started = await FakeBroker.start(undefined, port);
  const { publicKey } = await readSigningKeyFile(file('registered.pem'));
  started.softwareKeys.set(publicKey.thumbprint, SUBJECT);
  const { key_id: _none, ...document } = profileDocument({
    issuer: ISSUER,
    subject: SUBJECT,
    profiles: [
      routeDocument({ audience: AUDIENCES[0] }),
      routeDocument({ route_id: 'admin', path_template: '/v1/admin', audience: AUDIENCES[1] }),
    ],
  });
  started.profiles = [document];
  return started;
}

function args(...more: readonly string[]): readonly string[] {
  const files = ['--private-key-out', keyFile(), '--admin-listen', '127.0.0.1:0'];
  return ['agent', '--broker-url', broker.url, '--key', file('registered.pem'), ...files, ...more];
}

async function startAgent(...more: readonly string[]): Promise<{ child: Child; adminUrl: string }> {
  const child = startChild({ command: process.execPath, args: [LAUNCHER, ...args(...more)] });
  children.push(child);
  const [, address = ''] = await child.waitForLine(/"event":"listening".*"admin_listen":"([^"]+)"/);
  return { child, adminUrl: `http://${address}` };
}

function readiness(adminUrl: string, status: number): Promise<string> {
  return waitFor(`/readyz to be ${status}`, async () => {
    const answer = await httpGet(`${adminUrl}/readyz`);
    return answer.status === status ? answer.text : undefined;
  });
}

async function state() {
  return parseBrokerState(await readFile(brokerStatePathOf(keyFile()), 'utf8'), 'state');
}

function sign(url = 'https://api.shop.example/v1/orders/7') {
  return runInProcess(['sign', 'GET', url, '--key', keyFile(), '--out', '-', '--format', 'json']);
}

it('keeps a passport for each audience, with which sign asks no broker', async () => {
  const { adminUrl, child } = await startAgent();
  await readiness(adminUrl, 200);
  const { passports } = await state();
  expect(passports.map(({ audience, subject }) => [audience, subject])).toEqual(
    AUDIENCES.map((audience) => [audience, SUBJECT]),
  );
  expect((await stat(brokerStatePathOf(keyFile()))).mode & 0o777).toBe(0o600);
  expect((await stat(keyFile())).mode & 0o777).toBe(0o600);
  const asked = broker.requests.length;
  for (const [i, path] of ['/v1/orders/7', '/v1/admin'].entries()) {
    const signed = await sign(`https://api.shop.example${path}`);
    expect(signed).toMatchObject({ exitCode: 0 });
    expect(JSON.parse(signed.stdout).Authorization).toBe(`Passport ${passports[i]?.jws}`);
  }
  expect(broker.requests.length).toBe(asked);
  const shown = await runInProcess(['status', '--key', keyFile()]);
  expect(shown.stdout).toMatch(/^status +valid\nsubject +job:nightly\n/);
  expect(shown.stdout.match(/^passport +https:\/\/\S+, ends \S+ \(in \d+m/gm)?.length).toBe(2);
  const { text } = await httpGet(`${adminUrl}/metrics`);
  expect(text).toMatch(/^proofgate_agent_passports_total\{outcome="issued"\} 1$/m);
  expect(text).toMatch(/^proofgate_agent_passport_expires_at_seconds [0-9]{10}$/m);
  child.signal('SIGTERM');
  expect(await child.exited).toEqual({ code: 0, signal: null });
  expect((await readdir(file('keys'))).filter((name) => name.includes('agent'))).toEqual([]);
  const key = await readFile(file('registered.pem'), 'utf8');
  const said = child.stderrLines.join('\n');
  for (const secret of [...broker.secrets, ...key.split('\n').slice(1, 2)])
    expect(said).not.toContain(secret);
});

it('renews before the end, through failures, and starts again with what is there', async () => {
  broker.passportTtlSeconds = 6;
  const { adminUrl, child } = await startAgent();
  await readiness(adminUrl, 200);
  const first = await state();
  const renewed = await waitFor('a renewal', async () => {
    const now = await state();
    return now.passports[0]?.jws === first.passports[0]?.jws ? undefined : now;
  });
  expect(renewed.passports.length).toBe(2);
  // Half of a set is never installed.
  let passportsAsked = 0;
  broker.interfere = (path) =>
    path === '/v1/passports' && ++passportsAsked % 2 === 0 ? { status: 503, code: 'overloaded' } : undefined;
  await child.waitForLine(/"event":"passport_failed","code":"overloaded"/);
  const during = await state();
  expect(during.passports.map(({ jws }) => jws)).toEqual(renewed.passports.map(({ jws }) => jws));
  expect(await readiness(adminUrl, 200)).toContain('overloaded');
  // Without the broker the next agent is ready with what the last one left.
  broker.interfere = undefined;
  broker.passportTtlSeconds = 300;
  await waitFor(
    'long passports',
    async () => ((await state()).passports[0]?.expiresAtMs ?? 0) > Date.now() + 60_000,
  );
  await child.stop();
  broker.interfere = () => ({ status: 503, code: 'overloaded' });
  const next = await startAgent();
  await readiness(next.adminUrl, 200);
  expect(await sign()).toMatchObject({ exitCode: 0 });
});

it('says that a passport has ended, to probes and to sign', async () => {
  broker.passportTtlSeconds = 3;
  const { adminUrl } = await startAgent();
  await readiness(adminUrl, 200);
  broker.interfere = () => ({ status: 403, code: 'caller_denied' });
  expect(await readiness(adminUrl, 503)).toMatch(/passport_expired.*caller_denied/);
  expectCliError(await sign(), 'passport_expired', 3);
  const { stdout } = await runInProcess(['status', '--key', keyFile(), '--output', 'json']);
  expect(JSON.parse(stdout)).toMatchObject({
    status: 'expired',
    svid: null,
    signing_profiles: ['orders', 'admin'],
  });
});

it('replaces no file that is not its own, and runs once', async () => {
  await writeFile(keyFile(), 'something else');
  expectCliError(await runInProcess(args()), 'file_exists', 2);
  expect(await readFile(keyFile(), 'utf8')).toBe('something else');
  await rm(keyFile());
  await startAgent();
  expectCliError(await runCli(LAUNCHER, args(), { cwd: folder }), 'agent_running', 2);
});

it.each([
  ['with Control', ['--control-url', 'https://c.example'], 'set_control_url_or_broker_url'],
  ['with a token', ['--proof-file', 'token'], 'set_control_url_or_broker_url'],
  ['with an SVID of a key', ['--svid-hint', 'a'], 'spiffe_socket_required'],
  ['without the CA', ['--broker-ca-file', 'absent.pem'], 'file_not_found'],
])('does not start %s', async (_case, more, code) => {
  expectCliError(await runInProcess(args(...more)), code, 2);
});

it('has the flags of the documents', () => {
  for (const document of ['docs/operate/cli.md', 'docs/operate/workloads.md']) {
    const blocks = [...readText(document).matchAll(/^```text\n(proofgate [^`]*--broker-url[^`]*)```/gm)];
    const flags = blocks.flatMap(([, block = '']) => block.match(/--[a-z-]+/g) ?? []);
    expect(flags.length).toBeGreaterThan(2);
    const known = ['--broker-url', '--spiffe-socket', '--key', '--private-key-out'];
    expect(flags.filter((flag) => !known.includes(flag))).toEqual([]);
  }
});
