/** Tests `enroll`, `status`, `sign` and `request` from the enrolled state, against a Control on loopback. */
import { execFileSync } from 'node:child_process';
import { chmod, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { selfSignedIdentity, startServer } from '../support/caller/local-server.ts';
import { runInProcess, startInProcess } from '../support/cli/in-process.ts';
import { type CliRun, expectCliError } from '../support/cli/run-cli.ts';
import { FakeControl, type FakeControlOptions, POLICY } from '../support/fakes/control-enrollment.ts';
import { profile } from '../support/fakes/control-enrollment-answers.ts';
import { waitUntil } from '../support/wait.ts';

let folder = '';
let control: FakeControl;
const inFolder = (name: string) => join(folder, name);
const KEY = 'key.pem';
const STATE = 'key.pem.enrollment.json';

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'proofgate-enroll-'));
});
afterEach(async () => {
  await control.close();
  await rm(folder, { recursive: true, force: true });
});

async function start(options: FakeControlOptions = {}): Promise<void> {
  control = await FakeControl.start(options);
  await writeFile(inFolder('token'), `${await control.token()}\n`, { mode: 0o644 });
}

function enrollArgs(...flags: readonly string[]): readonly string[] {
  const fixed = ['--control-url', control.url, '--policy', POLICY, '--proof-file', inFolder('token')];
  return ['enroll', ...fixed, '--poll-interval', '20ms', ...flags];
}

function enroll(...flags: readonly string[]): Promise<CliRun> {
  return runInProcess(enrollArgs('--private-key-out', inFolder(KEY), ...flags));
}

function status(...flags: readonly string[]): Promise<CliRun> {
  return runInProcess(['status', '--key', inFolder(KEY), ...flags]);
}

describe('proofgate enroll', () => {
  it('says status, key ID, fingerprint and expiration, and nothing else', async () => {
    await start();
    const run = await enroll();
    expect(run).toMatchObject({ exitCode: 0, stderr: '' });
    const [enrollment] = control.enrollments.values();
    expect(run.stdout.split('\n').slice(0, 3)).toEqual([
      'status       active',
      `key id       ${control.keyIds[0]}`,
      `fingerprint  ${enrollment?.key.thumbprint}`,
    ]);
    expect(run.stdout).toMatch(/\nexpires at {3}\S+Z\n$/);
    const json = await enroll('--output', 'json');
    expect(JSON.parse(json.stdout)).toEqual({
      status: 'active',
      key_id: control.keyIds[0],
      fingerprint: enrollment?.key.thumbprint,
      expires_at: expect.stringMatching(/Z$/),
    });
  });

  it('makes one key and one state, mode 0600, and nothing beside them', async () => {
    await start();
    await enroll();
    expect((await readdir(folder)).sort()).toEqual([KEY, STATE, 'token']);
    for (const name of [KEY, STATE]) expect((await stat(inFolder(name))).mode & 0o777).toBe(0o600);
  });

  it('run again says the same, and with the network gone that Control was not asked', async () => {
    await start();
    const args = enrollArgs('--private-key-out', inFolder(KEY));
    const first = await runInProcess(args);
    expect(await runInProcess(args)).toEqual(first);
    await control.close();
    const offline = await runInProcess(args);
    expect(offline).toMatchObject({ exitCode: 0, stdout: first.stdout });
    expect(offline.stderr).toMatch(/^Control did not answer whether the key is revoked \([^\n]+\n$/);
    const json = await runInProcess([...args, '--output', 'json']);
    expect(JSON.parse(json.stderr)).toMatchObject({ note: 'key_unconfirmed' });
    control = await FakeControl.start();
  });

  it('run again ends with key_revoked once the key was revoked', async () => {
    await start();
    await enroll();
    for (const enrollment of control.enrollments.values()) enrollment.keyStatus = 'revoked';
    expectCliError(await enroll(), 'key_revoked', 3);
    expect(control.submissions).toHaveLength(1);
  });

  it('enrolls again on request: a new key ID for the same key', async () => {
    await start();
    await enroll();
    const before = await readFile(inFolder(KEY));
    expect((await enroll('--force-reenroll')).exitCode).toBe(0);
    expect(control.keyIds).toHaveLength(2);
    expect(await readFile(inFolder(KEY))).toEqual(before);
    expect(JSON.parse((await status('--output', 'json')).stdout).derived_key.key_id).toBe(control.keyIds[1]);
  });

  it('enrolls a key that is there, and a second key beside it on request', async () => {
    await start();
    await runInProcess(['keygen', '--out', inFolder('own.pem')]);
    const own = await runInProcess(enrollArgs('--private-key-file', inFolder('own.pem')));
    const other = await runInProcess(enrollArgs('--private-key-out', inFolder('other.pem')));
    expect([own.exitCode, other.exitCode]).toEqual([0, 0]);
    expect(new Set([...control.enrollments.values()].map(({ key }) => key.thumbprint)).size).toBe(2);
  });

  it('reads the token through links, as a projected volume has them', async () => {
    await start();
    execFileSync('mkdir', [inFolder('..data')]);
    await writeFile(inFolder('..data/token'), await control.token());
    await rm(inFolder('token'));
    await symlink('..data/token', inFolder('token'));
    expect((await enroll()).exitCode).toBe(0);
  });

  it.each([
    [['--enrollment-policy', POLICY], {}],
    [[], { PROOFGATE_ENROLLMENT_POLICY: POLICY }],
    [['--policy', POLICY, '--enrollment-policy', POLICY], {}],
  ])('takes the policy as %j %j', async (flags, env) => {
    await start();
    const args = ['enroll', '--control-url', control.url, '--private-key-out', inFolder(KEY)];
    const run = await runInProcess([...args, '--kubernetes-token-file', inFolder('token'), ...flags], env);
    expect(run).toMatchObject({ exitCode: 0, stderr: '' });
  });

  it('reads all settings from a file', async () => {
    await start();
    const lines = {
      control_url: control.url,
      enrollment_policy: POLICY,
      provider: 'oidc_jwks',
      private_key_out: inFolder(KEY),
      proof_file: inFolder('token'),
      wait_for_activation: false,
      timeout: '1m',
      poll_interval: '10ms',
      submit_retries: 0,
      refresh_skew: '1m',
      force_reenroll: true,
      output: 'json',
    };
    await writeFile(inFolder('enroll.yaml'), JSON.stringify(lines));
    const run = await runInProcess(['enroll', '--config', inFolder('enroll.yaml')]);
    expect(JSON.parse(run.stdout)).toMatchObject({ status: 'active' });
  });

  it('refuses with 3, and goes through once the cause is gone', async () => {
    await start();
    control.policyProblem = [409, 'source_not_active'];
    expectCliError(await enroll(), 'source_not_active', 3);
    control.policyProblem = undefined;
    await writeFile(inFolder('token'), await control.token({ audience: 'elsewhere' }));
    expectCliError(await enroll(), 'token_audience_mismatch', 3);
    expect(control.enrollments.size).toBe(0);
    await writeFile(inFolder('token'), await control.token());
    expect((await enroll()).exitCode).toBe(0);
    expect(control.enrollments.size).toBe(1);
  });

  it('ends with 4 while it is pending, and with 3 when it is denied', async () => {
    await start({ approval: 'manual' });
    expectCliError(await enroll('--wait-for-activation', 'false'), 'enrollment_pending', 4);
    const timedOut = await enroll('--timeout', '100ms');
    expect(timedOut).toMatchObject({ exitCode: 4, stdout: '' });
    expect(timedOut.stderr).toMatch(
      /^an earlier enrollment is under way.*\nwaiting for enrollment enr_.*\nerror: enrollment_pending: [^\n]+\n$/,
    );
    expect((await enroll('--no-wait-for-activation', '--output', 'json')).stderr).toMatch(
      /\n\{"error":"enrollment_pending","message":"[^"]+"\}\n$/,
    );
    control.denyAll('operator_denied');
    const denied = await enroll();
    expect(denied).toMatchObject({ exitCode: 3, stdout: '' });
    expect(denied.stderr).toMatch(
      /\nerror: enrollment_denied: the enrollment was denied: operator_denied\n$/,
    );
    expect(control.submissions).toHaveLength(1);
  });

  it.each([
    ['SIGTERM', []],
    ['SIGINT', ['--output', 'json']],
  ] as const)('stopped by %s, leaves files that the next run goes on with', async (signal, flags) => {
    await start({ approval: 'manual' });
    const running = startInProcess(enrollArgs('--private-key-out', inFolder(KEY), ...flags));
    await waitUntil(() => running.stderr().includes('waiting for enrollment'));
    process.emit(signal, signal);
    const run = await running.ended;
    expect(run).toMatchObject({ exitCode: 4, stdout: '' });
    expect(run.stderr).toMatch(/enrollment_pending/);
    control.approveAll();
    expect((await enroll()).exitCode).toBe(0);
    expect(control.submissions).toHaveLength(1);
  });

  it('makes a new key where the one of an earlier run is gone', async () => {
    await start();
    await enroll();
    await rm(inFolder(KEY));
    const run = await enroll('--output', 'json');
    expect(JSON.parse(run.stdout)).toMatchObject({ key_id: control.keyIds[1] });
    expect(new Set([...control.enrollments.values()].map(({ key }) => key.thumbprint)).size).toBe(2);
  });

  it('takes the key that it made for another policy, as long as nothing was issued to it', async () => {
    await start();
    const under = (policy: string) =>
      runInProcess(
        enrollArgs('--private-key-out', inFolder(KEY)).map((arg) => (arg === POLICY ? policy : arg)),
      );
    expectCliError(await under('epr_wrong'), 'policy_unknown', 3);
    const made = await readFile(inFolder(KEY), 'utf8');
    expect(await enroll()).toMatchObject({ exitCode: 0 });
    expect(await readFile(inFolder(KEY), 'utf8')).toBe(made);
    expectCliError(await under('epr_other'), 'file_exists', 2);
  });

  it('notes that a key is too short-lived for the refresh skew that was given', async () => {
    await start({ maxKeyLifetimeSeconds: 600 });
    const run = await enroll('--refresh-skew', '10m', '--output', 'json');
    expect(run).toMatchObject({ exitCode: 0 });
    expect(JSON.parse(run.stderr)).toMatchObject({ note: 'refresh_skew_shortened' });
    expect(await enroll()).toMatchObject({ exitCode: 0, stderr: '' });
  });

  it('says once what it waits for, not at each poll', async () => {
    await start({ approval: 'manual' });
    const running = startInProcess(enrollArgs('--private-key-out', inFolder(KEY)));
    await waitUntil(() => control.requests.length > 6);
    control.approveAll();
    expect((await running.ended).stderr.match(/waiting for/g)).toHaveLength(1);
  });

  it('speaks TLS to whom the CA file names', async () => {
    await start();
    const identity = selfSignedIdentity('localhost');
    const server = await startServer((_seen, response) => response.writeHead(404).end(), identity);
    await writeFile(inFolder('ca.crt'), identity.certificatePem);
    const url = `https://localhost:${server.port}`;
    const args = [
      '--control-url',
      url,
      '--policy',
      POLICY,
      '--proof-file',
      inFolder('token'),
      '--poll-interval',
      '1ms',
    ];
    const key = ['--private-key-out', inFolder(KEY), '--submit-retries', '0'];
    expectCliError(await runInProcess(['enroll', ...args, ...key]), 'unreachable', 5);
    expect(server.seen).toHaveLength(0);
    const trusting = await runInProcess(['enroll', ...args, ...key, '--control-ca-file', inFolder('ca.crt')]);
    expectCliError(trusting, 'control_answer_invalid', 5);
    expect(server.seen).toHaveLength(1);
    await server.close();
  });
});

describe('proofgate sign and request', () => {
  it('sign with what the enrollment says, when no profile file is given', async () => {
    await start();
    control.profiles = [profile(), profile({ name: 'write', route_id: 'orders-write', method: 'POST' })];
    await enroll();
    const args = ['--key', inFolder(KEY), '--out', inFolder('headers')];
    const url = 'https://api.shop.example/v1/orders/7';
    const run = await runInProcess(['sign', 'GET', url, ...args, '--output', 'json']);
    expect(JSON.parse(run.stdout)).toMatchObject({ route_id: 'orders-read', key_id: control.keyIds[0] });
    const named = await runInProcess([
      'sign',
      'POST',
      url,
      ...args,
      '--profile',
      'write',
      '--output',
      'json',
    ]);
    expect(JSON.parse(named.stdout)).toMatchObject({ route_id: 'orders-write' });
    const elsewhere = await runInProcess(['sign', 'GET', 'https://evil.example/v1/orders/7', ...args]);
    expectCliError(elsewhere, 'origin_not_allowed', 3);
  });

  it('send with it', async () => {
    await start();
    await enroll();
    const server = await startServer((_seen, response) => response.end('fine'));
    const args = ['--connect-to', `127.0.0.1:${server.port}`, '--key', inFolder(KEY)];
    const run = await runInProcess(['request', 'GET', 'http://api.shop.example/v1/orders/7', ...args]);
    expect(run).toEqual({ exitCode: 0, stdout: 'fine', stderr: '' });
    expect(server.seen[0]?.headers.authorization).toMatch(/^Passport /);
    await server.close();
  });

  it.each([
    ['pending', { approval: 'manual' }, 'enrollment_pending', 4],
    ['expired', { nowMs: () => Date.now() - 3_700_000 }, 'key_expired', 3],
  ] as const)('tell an enrollment that is %s', async (_what, options, code, exitCode) => {
    await start(options);
    await enroll('--no-wait-for-activation');
    const args = [
      'sign',
      'GET',
      'https://api.shop.example/v1/orders/7',
      '--key',
      inFolder(KEY),
      '--out',
      '-',
    ];
    expectCliError(await runInProcess(args), code, exitCode);
  });

  it('refuse the enrollment of another key', async () => {
    await start();
    await enroll();
    await rm(inFolder(KEY));
    await runInProcess(['keygen', '--out', inFolder(KEY)]);
    const args = [
      'sign',
      'GET',
      'https://api.shop.example/v1/orders/7',
      '--key',
      inFolder(KEY),
      '--out',
      '-',
    ];
    expectCliError(await runInProcess(args), 'enrollment_state_mismatch', 2);
    expectCliError(await status(), 'enrollment_state_mismatch', 2);
    // A different command line created the existing files.
    expectCliError(await enroll(), 'file_exists', 2);
  });
});

describe('proofgate status', () => {
  const CONDITIONS = [
    { condition: 'derived_key', state: 'active', satisfied: true, since: '2026-11-21T04:00:00Z' },
    {
      condition: 'target_acknowledged',
      state: 'pending',
      satisfied: false,
      blocked_by: 'target\u001b[31m t1',
    },
  ];

  it('shows the key, its expiry and what readiness waits for', async () => {
    await start();
    control.readiness = { ready: false, conditions: CONDITIONS };
    await enroll();
    const run = await status();
    expect(run).toMatchObject({ exitCode: 0, stderr: '' });
    expect(run.stdout).toMatch(/^status {7}active$/m);
    expect(run.stdout).toMatch(/^expires at {3}\S+Z \(in (1h|59m\d+s)\)$/m);
    expect(run.stdout).toMatch(/^refresh {6}in \d+m/m);
    expect(run.stdout).toMatch(/^ready {8}no$/m);
    expect(run.stdout).toMatch(/^ {2}derived_key {10}yes active since 2026-11-21T04:00:00Z$/m);
    expect(run.stdout).toMatch(/^ {2}target_acknowledged {2}no {2}pending, blocked by target\[31m t1$/m);
    const json = JSON.parse((await status('--output', 'json')).stdout);
    expect(json).toMatchObject({
      derived_key: {
        status: 'active',
        key_id: control.keyIds[0],
        refresh_due: false,
        signing_profiles: ['orders-read'],
      },
      attempt: null,
      readiness: { ready: false, conditions: [{ satisfied: true }, { blocked_by: 'target\u001b[31m t1' }] },
    });
  });

  it('shows the state of an enrollment that has no key yet', async () => {
    await start({ approval: 'manual' });
    const waiting = { condition: 'derived_key', state: 'pending_approval', satisfied: false };
    control.readiness = { ready: false, conditions: [waiting] };
    await enroll('--wait-for-activation', 'false');
    expect((await status()).stdout).toMatch(/^status {7}.*pending_approval$/m);
  });

  it('renews the profiles beside the key, so that a new grant can be used at once', async () => {
    await start();
    control.profiles = [];
    await enroll();
    const namesOf = async (...flags: readonly string[]) =>
      JSON.parse((await status('--output', 'json', ...flags)).stdout).derived_key.signing_profiles;
    const target = ['GET', 'https://api.shop.example/v1/orders/7', '--key', inFolder(KEY), '--out', '-'];
    expectCliError(await runInProcess(['sign', ...target]), 'profile_not_found', 2);
    control.profiles = [profile()];
    expect(await namesOf('--offline')).toEqual([]);
    expect(await namesOf()).toEqual(['orders-read']);
    expect(await namesOf('--offline')).toEqual(['orders-read']);
    expect((await runInProcess(['sign', ...target])).exitCode).toBe(0);
    expect(control.keyIds).toHaveLength(1);
  });

  it('works offline, with a note when that was not requested', async () => {
    await start();
    await enroll();
    const asked = control.requests.length;
    expect(await status('--offline')).toMatchObject({ exitCode: 0, stderr: '' });
    expect(control.requests).toHaveLength(asked);
    control.interfere = () => ({ status: 503, code: 'unavailable' });
    const noted = await status();
    expect(noted).toMatchObject({ exitCode: 0, stderr: 'readiness is not known: unavailable\n' });
    expect(noted.stdout).not.toMatch(/^ready/m);
    const json = await status('--output', 'json', '--control-url', 'http://127.0.0.1:9');
    expect(json).toMatchObject({ exitCode: 0 });
    expect(JSON.parse(json.stderr)).toMatchObject({ note: 'readiness_unknown' });
    expect(JSON.parse(json.stdout)).toMatchObject({ readiness: null });
  });

  it('shows what is under way, what has expired, and what is near it', async () => {
    await start({ approval: 'manual' });
    await enroll('--no-wait-for-activation');
    const [enrollment] = control.enrollments.values();
    expect((await status()).stdout).toMatch(new RegExp(`^under way {4}${enrollment?.enrollmentId}$`, 'm'));
    control.approveAll();
    await enroll();
    const due = JSON.parse((await status('--refresh-skew', '3h36m', '--output', 'json')).stdout);
    expect(due.derived_key.refresh_due).toBe(false);
    const state = await readFile(inFolder(STATE), 'utf8');
    const inOneMinute = new Date(Date.now() + 60_000).toISOString();
    await writeFile(
      inFolder(STATE),
      state.replace(/"expires_at": "[^"]+"/, `"expires_at": "${inOneMinute}"`),
    );
    const near = JSON.parse((await status('--offline', '--output', 'json')).stdout);
    // Refresh is due 15 % of a minute before expiry: not yet.
    expect(near.derived_key).toMatchObject({ status: 'active', refresh_due: false });
    const before = new Date(Date.now() - 1000).toISOString();
    await writeFile(inFolder(STATE), state.replace(/"expires_at": "[^"]+"/, `"expires_at": "${before}"`));
    const over = JSON.parse((await status('--offline', '--output', 'json')).stdout);
    expect(over.derived_key).toMatchObject({ status: 'expired', refresh_due: true });
    expectCliError(await status('--refresh-skew', '0s'), 'invalid_enroll_timing', 2);
    expectCliError(await status('--refresh-skew', '3h37m'), 'invalid_enroll_timing', 2);
  });
});

it('nothing that it says or keeps holds a secret', async () => {
  await start({ approval: 'manual' });
  const runs = [
    await enroll('--no-wait-for-activation'),
    await enroll('--timeout', '60ms', '--output', 'json'),
  ];
  control.policyProblem = [403, 'token_subject_mismatch'];
  runs.push(await runInProcess(enrollArgs('--private-key-out', inFolder('other.pem'))));
  control.policyProblem = undefined;
  control.approveAll();
  runs.push(await enroll(), await status(), await status('--output', 'json'));
  const pem = await readFile(inFolder(KEY), 'utf8');
  const token = (await readFile(inFolder('token'), 'utf8')).trim();
  const texts = runs.flatMap(({ stdout, stderr }) => [stdout, stderr]);
  for (const name of await readdir(folder)) {
    if (name.endsWith('.json')) texts.push(await readFile(inFolder(name), 'utf8'));
  }
  const [, keyBody = ''] = /\n([A-Za-z0-9+/=]+)\n/.exec(pem) ?? [];
  const secrets = [keyBody, token, ...token.split('.').slice(1), ...control.secrets];
  expect(secrets.every((secret) => secret.length >= 16)).toBe(true);
  expect(secrets.length).toBeGreaterThan(6);
  for (const secret of secrets) expect(texts.filter((text) => text.includes(secret))).toEqual([]);
});

it('is not led by a state that others may write', async () => {
  await start();
  await enroll();
  await chmod(inFolder(STATE), 0o620);
  expectCliError(await status(), 'file_permissions', 2);
  expectCliError(await enroll(), 'file_permissions', 2);
});

it('a folder that cannot be written to costs no enrollment', async () => {
  await start();
  await runInProcess(['keygen', '--out', inFolder(KEY)]);
  await symlink('/dev/null', inFolder(STATE));
  const run = await runInProcess(enrollArgs('--private-key-file', inFolder(KEY)));
  expectCliError(run, 'file_not_regular', 2);
  expect(control.requests).toHaveLength(0);
});
