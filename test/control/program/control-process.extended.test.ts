/** Tests the shipped `proofgate control`: a process with an empty directory, configured entirely over its API. */
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import LibsqlDatabase from 'libsql';
import { LAUNCHER } from '../../support/cli/compiled-cli.ts';
import { runInProcess } from '../../support/cli/in-process.ts';
import { type CliRun, expectCliError, runCli } from '../../support/cli/run-cli.ts';
import { makeSite } from '../../support/control/control-configuration.ts';
import {
  type ControlProgram,
  type ControlProgramOptions,
  readBootstrapToken,
  startControlProgram,
} from '../../support/control/control-program.ts';
import { makeCertificates, type TestCertificates } from '../../support/harness/certificates.ts';
import { freePort } from '../../support/harness/free-port.ts';
import { httpGet, waitFor } from '../../support/wait.ts';

let folder = '';
let data = '';
/** For tests that change nothing of it. */
let shared: ControlProgram;
let sharedData = '';
const running: ControlProgram[] = [];

beforeAll(async () => {
  sharedData = await mkdtemp(join(tmpdir(), 'proofgate-control-shared-'));
  shared = await startControlProgram({ launcher: LAUNCHER, dataDirectory: sharedData });
});
afterAll(async () => {
  await shared.child.stop();
  await rm(sharedData, { recursive: true });
});
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'proofgate-control-'));
  data = join(folder, 'data');
  await mkdir(data);
});
afterEach(async () => {
  await Promise.all(running.splice(0).map(({ child }) => child.stop()));
  await rm(folder, { recursive: true });
});

async function start(options: Partial<ControlProgramOptions> = {}): Promise<ControlProgram> {
  const program = await startControlProgram({ launcher: LAUNCHER, dataDirectory: data, ...options });
  running.push(program);
  return program;
}

async function stop({ child }: ControlProgram): Promise<void> {
  expect(await child.stop()).toEqual({ code: 0, signal: null });
}

/** @param flags added to a data directory and free ports, which they may override */
async function expectStartError(
  flags: readonly string[],
  code: string,
  exitCode: number,
  runs: (args: readonly string[], env: Record<string, string>) => Promise<CliRun> = runInProcess,
): Promise<string> {
  const env = {
    PROOFGATE_DATA_DIR: data,
    PROOFGATE_LISTEN: `127.0.0.1:${await freePort()}`,
    PROOFGATE_ADMIN_LISTEN: '127.0.0.1:0',
    PROOFGATE_LOG_LEVEL: 'silent',
  };
  const run = await runs(['control', ...flags], env);
  expectCliError(run, code, exitCode);
  return run.stderr;
}

const asProcess = (args: readonly string[], env: Record<string, string>) =>
  runCli(LAUNCHER, args, { cwd: folder, env });

describe('from nothing', () => {
  it('makes its secrets, serves the API without them, and finds everything again after a restart', async () => {
    const first = await start({ flags: ['--log-level', 'trace'] });
    expect((await readdir(data)).filter((name) => !name.startsWith('control.sqlite'))).toEqual([
      'bootstrap-token',
      'master-key',
    ]);
    for (const name of ['bootstrap-token', 'master-key', 'control.sqlite']) {
      expect((await stat(join(data, name))).mode & 0o777).toBe(0o600);
    }
    const token = await readBootstrapToken(data);
    const masterKey = (await readFile(join(data, 'master-key'), 'utf8')).trim();
    await makeSite(first, token);
    const metrics = (await httpGet(`${first.adminUrl}/metrics`)).text;
    const audit = await first.call({ path: '/v1/audit-events?limit=200', token });
    await stop(first);
    const { stderrLines, stdoutLines } = first.child;
    const output = [...stderrLines, ...stdoutLines, metrics, JSON.stringify(audit.body)].join('\n');
    expect(output).toContain('/v1/fleets/:fleet_id/sites');
    expect(output).not.toContain(token);
    expect(output).not.toContain(masterKey);

    const second = await start();
    expect(await readBootstrapToken(data)).toBe(token);
    const route = await second.call({ path: '/v1/sites/shop-eu-1/routes/orders-read', token });
    expect(route).toMatchObject({ status: 200, body: { published: true } });
    const { body } = await second.call({ path: '/v1/audit-events?limit=200', token });
    const kinds = (body.items as { kind: string; actor: string }[]).map(({ kind }) => kind);
    expect(kinds).toContain('proofgate.control.master_key.register');
    expect(kinds).toContain('proofgate.control.bootstrap_token.create');
    expect(kinds.filter((kind) => kind === 'proofgate.control.bootstrap_token.create')).toHaveLength(1);
    expect(kinds.filter((kind) => /^proofgate\.control\.site\.create/.test(kind))).toHaveLength(1);
    await stop(second);

    // The token's file may go.
    await rm(join(data, 'bootstrap-token'));
    const third = await start();
    expect(await readdir(data)).not.toContain('bootstrap-token');
    expect(await third.call({ path: '/v1/session', token })).toMatchObject({ status: 200 });
  });

  it('refuses a request without a token, and one that is nearly right', async () => {
    const program = shared;
    const token = await readBootstrapToken(sharedData);
    const nearly = `${token.slice(0, -1)}${token.endsWith('A') ? 'B' : 'A'}`;
    for (const wrong of [
      undefined,
      nearly,
      token.toLowerCase(),
      token.slice(4),
      'pgb_',
      `pga_${token.slice(4)}`,
    ]) {
      const call = { path: '/v1/environments', ...(wrong === undefined ? {} : { token: wrong }) };
      expect(await program.call(call)).toMatchObject({
        status: 401,
        body: { code: 'authentication_required' },
        headers: { 'www-authenticate': expect.stringMatching(/^Bearer/) },
      });
    }
    expect(await program.call({ path: '/v1/environments', token })).toMatchObject({ status: 200 });
  });
});

describe('the bootstrap token', () => {
  it('is ended over the API, stays ended over a restart, and is brought back by the flag, once', async () => {
    const first = await start();
    const token = await readBootstrapToken(data);
    expect(await first.call({ method: 'DELETE', path: '/v1/bootstrap-token', token })).toMatchObject({
      status: 204,
    });
    expect(await first.call({ path: '/v1/session', token })).toMatchObject({ status: 401 });
    await stop(first);
    await rm(join(data, 'bootstrap-token'));

    const second = await start();
    expect(await readdir(data)).not.toContain('bootstrap-token');
    await stop(second);

    const flags = ['--reset-bootstrap-token'];
    const third = await start({ flags });
    const fresh = await readBootstrapToken(data);
    expect(fresh).not.toBe(token);
    expect(await third.call({ path: '/v1/session', token: fresh })).toMatchObject({
      status: 200,
      body: { actor: 'bootstrap' },
    });
    await stop(third);

    // The flag has no effect on later starts: an existing file is not overwritten.
    const fourth = await start({ flags });
    expect(await readBootstrapToken(data)).toBe(fresh);
    expect(await fourth.call({ path: '/v1/session', token: fresh })).toMatchObject({ status: 200 });
  });

  it('is taken from a file that is there before the first start', async () => {
    const token = `pgb_${'x'.repeat(43)}`;
    const file = join(folder, 'given-token');
    await writeFile(file, `${token}\n`, { mode: 0o600 });
    const program = await start({ flags: ['--bootstrap-token-file', file] });
    expect(await readdir(data)).not.toContain('bootstrap-token');
    expect(await program.call({ path: '/v1/session', token })).toMatchObject({ status: 200 });
  });

  it.each([
    ['that others may read', `pgb_${'x'.repeat(43)}`, 0o640, 'file_permissions'],
    ['that holds another kind of token', `pga_${'x'.repeat(43)}`, 0o600, 'bootstrap_token_invalid'],
    ['that is empty', '', 0o600, 'bootstrap_token_invalid'],
  ])('a file %s ends the start', async (_name, content, mode, code) => {
    await writeFile(join(data, 'bootstrap-token'), content);
    await chmod(join(data, 'bootstrap-token'), mode);
    const stderr = await expectStartError([], code, 2);
    expect(stderr).not.toContain('xxxx');
  });
});

describe('the master key', () => {
  it('may lie elsewhere and is made there; then the database needs it, and no other', async () => {
    const file = join(folder, 'key');
    await stop(await start({ flags: ['--master-key-file', file] }));
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect(await readdir(data)).not.toContain('master-key');
    await expectStartError([], 'master_key_missing', 2);
    expect(await readdir(data)).not.toContain('master-key');
    const other = Buffer.alloc(32, 7).toString('base64url');
    await writeFile(join(data, 'master-key'), `${other}\n`, { mode: 0o600 });
    const stderr = await expectStartError([], 'master_key_mismatch', 2, asProcess);
    expect(stderr).not.toContain(other);
  });

  it.each([
    ['others may read', Buffer.alloc(32).toString('base64url'), 0o604, 'file_permissions'],
    ['is too short', Buffer.alloc(31).toString('base64url'), 0o600, 'master_key_invalid'],
    ['is not base64url', 'n0t a key, but as many characters as one has', 0o600, 'master_key_invalid'],
  ])('a file that %s ends the start', async (_name, content, mode, code) => {
    await writeFile(join(data, 'master-key'), content);
    await chmod(join(data, 'master-key'), mode);
    await expectStartError([], code, 2);
  });
});

describe('the database', () => {
  it('belongs to one process', async () => {
    await expectStartError(['--data-dir', sharedData], 'database_unavailable', 5, asProcess);
  });

  it('of a newer version is distinguished from one that cannot be reached', async () => {
    await stop(await start());
    const database = new LibsqlDatabase(join(data, 'control.sqlite'));
    database.exec("insert into kysely_migration (name, timestamp) values ('9999-more', '2030-01-01')");
    database.close();
    await expectStartError([], 'database_newer', 2);
  });

  it('that cannot be reached is reported without its password, from flag and file', async () => {
    const port = await freePort();
    const url = `postgres://proofgate:hunter2-secret@127.0.0.1:${port}/control`;
    const file = join(folder, 'database-url');
    await writeFile(file, `${url}\n`, { mode: 0o600 });
    for (const flags of [
      ['--database-url', url],
      ['--database-url-file', file],
    ]) {
      const stderr = await expectStartError(flags, 'database_unavailable', 5);
      expect(stderr).not.toMatch(/hunter2|proofgate:/);
    }
    await chmod(file, 0o604);
    await expectStartError(['--database-url-file', file], 'file_permissions', 2);
  });
});

describe('addresses', () => {
  it('that are taken end the start', async () => {
    await expectStartError(['--listen', new URL(shared.url).host], 'listen_failed', 2, asProcess);
    await expectStartError(['--admin-listen', new URL(shared.adminUrl).host], 'listen_failed', 2, asProcess);
  });
});

describe('operators', () => {
  it('an identity provider that does not answer is reported at the start, and tokens still work', async () => {
    const issuer = `https://127.0.0.1:${await freePort()}`;
    const program = await start({ flags: ['--oidc-issuer', issuer, '--oidc-client-id', 'proofgate'] });
    await program.child.waitForLine(/"event":"identity_provider"/);
    const token = await readBootstrapToken(data);
    expect(await program.call({ path: '/v1/session', token })).toMatchObject({ status: 200 });
    expect(await program.call({ path: '/auth/login' })).toMatchObject({
      status: 503,
      body: { code: 'identity_provider_unavailable' },
    });
  });

  it('without one, sign-in says so', async () => {
    expect(await shared.call({ path: '/auth/login' })).toMatchObject({
      status: 404,
      body: { code: 'sign_in_not_configured' },
    });
  });
});

describe('behind a proxy', () => {
  it('serves plain HTTP when configured so, under its public URLs, and takes addresses from the configured proxy only', async () => {
    const proxied = ['--allow-plain-http', '--public-url', 'https://control.shop.example/proofgate/'];
    const program = await start({ flags: [...proxied, '--trusted-proxy', '127.0.0.0/8'] });
    const headers = { 'x-forwarded-for': '203.0.113.7' };
    expect(await program.call({ path: '/healthz', headers })).toMatchObject({ status: 200 });
    await program.child.waitForLine(/"remote_address":"203\.0\.113\.7"/);
    expect(program.child.stderrLines.join('')).toContain(
      '"public_url":"https://control.shop.example/proofgate"',
    );
    await stop(program);

    const other = await start({ flags: proxied });
    expect(await other.call({ path: '/healthz', headers })).toMatchObject({ status: 200 });
    await other.child.waitForLine(/"remote_address":"127\.0\.0\.1"/);
    expect(other.child.stderrLines.join('')).not.toContain('203.0.113.7');
  });
});

describe('stopping', () => {
  it('answers what is in flight, refuses what comes later, and ends in order', async () => {
    const program = await start();
    const token = await readBootstrapToken(data);
    const calls = Array.from({ length: 20 }, (_, i) =>
      program.call({ method: 'POST', path: '/v1/environments', token, body: { name: `e-${i}` } }),
    );
    await waitFor('the first of them', async () =>
      program.child.stderrLines.some((line) => line.includes('"route":"/v1/environments"'))
        ? true
        : undefined,
    );
    program.child.signal('SIGTERM');
    const ended = await program.child.exited;
    expect(ended).toEqual({ code: 0, signal: null });
    const answers = await Promise.allSettled(calls);
    const made = answers.filter((one) => one.status === 'fulfilled' && one.value.status === 201);
    expect(made.length).toBeGreaterThan(0);
    const again = await start();
    const { body } = await again.call({ path: '/v1/environments?limit=200', token });
    expect((body.items as unknown[]).length).toBeGreaterThanOrEqual(made.length);
  });

  it('is not held up by connections that lie idle or never finish a request', async () => {
    const program = await start({ flags: ['--drain-timeout', '500ms'] });
    const { hostname, port } = new URL(program.url);
    const { connect } = await import('node:net');
    const sockets = [
      '',
      'GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n',
      'POST /v1/environments HTTP/1.1\r\nHost: x\r\nContent-',
    ].map((text) => {
      const socket = connect(Number(port), hostname);
      socket.on('error', () => {});
      socket.write(text);
      return socket;
    });
    await Promise.all(sockets.map((socket) => new Promise((resolve) => socket.once('connect', resolve))));
    await stop(program);
    for (const socket of sockets) socket.destroy();
  });
});

describe('TLS', () => {
  let certificates: TestCertificates;
  let others: TestCertificates;

  beforeAll(async () => {
    certificates = await makeCertificates('localhost', 'spiffe://x/y', ['127.0.0.1']);
    others = await makeCertificates('localhost', 'spiffe://x/y', ['127.0.0.1']);
  });
  afterAll(() => Promise.all([certificates.remove(), others.remove()]));

  it('serves with the files, and with what replaces them, without a restart', async () => {
    const certFile = join(folder, 'tls.crt');
    const keyFile = join(folder, 'tls.key');
    await writeFile(certFile, certificates.server.cert);
    await writeFile(keyFile, certificates.server.key, { mode: 0o640 });
    const program = await start({
      scheme: 'https',
      ca: certificates.ca.cert,
      flags: ['--tls-cert', certFile, '--tls-key', keyFile],
    });
    expect(await program.call({ path: '/healthz' })).toMatchObject({ status: 200 });

    // Certificate and key do not match for a moment: the old pair stays in use.
    await writeFile(certFile, others.server.cert);
    await program.child.waitForLine(/certificate_unusable/);
    expect(await program.call({ path: '/healthz' })).toMatchObject({ status: 200 });
    await writeFile(keyFile, others.server.key);
    await program.child.waitForLine(/certificate_changed/);
    expect(await program.call({ path: '/healthz', ca: others.ca.cert })).toMatchObject({ status: 200 });
    await expect(program.call({ path: '/healthz' })).rejects.toThrow(/certificate/);
  });

  it('a key that everybody may read, or another certificate’s, ends the start', async () => {
    const keyFile = join(folder, 'tls.key');
    await writeFile(keyFile, certificates.server.key);
    await chmod(keyFile, 0o644);
    const flags = ['--tls-cert', certificates.server.certPath, '--tls-key', keyFile];
    await expectStartError(flags, 'file_permissions', 2);
    await chmod(keyFile, 0o640);
    await writeFile(keyFile, others.server.key);
    await expectStartError(flags, 'tls_pair_invalid', 2);
  });
});
