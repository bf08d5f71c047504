/** Tests the shipped program as `proofgate agent`: probes, signals, kills at any step, and a second agent on the same folder. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdir, mkdtemp, readdir, readFile, readlink, rename, rm, writeFile } from 'node:fs/promises';
import { networkInterfaces, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { readEnrolledKeyFile, settledKeyFile } from '../../../src/caller/enroll/state-file.ts';
import { LAUNCHER } from '../../support/cli/compiled-cli.ts';
import { runInProcess } from '../../support/cli/in-process.ts';
import { expectCliError, runCli } from '../../support/cli/run-cli.ts';
import { FakeControl, type FakeControlOptions, POLICY } from '../../support/fakes/control-enrollment.ts';
import { type Child, startChild } from '../../support/harness/child.ts';
import { httpGet, remainingMs, waitFor } from '../../support/wait.ts';

/** Each kind of moment twice. `make soak` kills more often. */
const KILLS = Number(process.env.PROOFGATE_TEST_KILLS ?? 8);
const TIMEOUT_MS = 300_000 + KILLS * 5_000;
const WITHOUT_IPV6 = fileURLToPath(new URL('without-ipv6.py', import.meta.url));
let folder = '';
let control: FakeControl;
const children: Child[] = [];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'proofgate-agent-'));
  await mkdir(join(folder, 'keys'));
});
afterEach(async () => {
  for (const child of children.splice(0)) await child.stop();
  await control.close();
  await rm(folder, { recursive: true, force: true });
});

async function start(options: FakeControlOptions = {}): Promise<void> {
  control = await FakeControl.start(options);
  await renewToken();
}

async function renewToken(): Promise<void> {
  await writeFile(join(folder, 'token.new'), await control.token());
  await rename(join(folder, 'token.new'), join(folder, 'token'));
}

const keyFile = () => join(folder, 'keys', 'key.pem');

function args(...more: readonly string[]): readonly string[] {
  const target = ['--control-url', control.url, '--policy', POLICY, '--proof-file', join(folder, 'token')];
  const files = ['--private-key-out', keyFile(), '--admin-listen', '127.0.0.1:0'];
  return ['agent', ...target, ...files, '--poll-interval', '20ms', ...more];
}

interface Agent {
  readonly child: Child;
  readonly adminUrl: string;
}

async function startAgent(...more: readonly string[]): Promise<Agent> {
  const child = startChild({ command: process.execPath, args: [LAUNCHER, ...args(...more)] });
  children.push(child);
  const [, address = ''] = await child.waitForLine(/"event":"listening".*"admin_listen":"([^"]+)"/);
  return { child, adminUrl: `http://${address}` };
}

function ready({ adminUrl }: Agent): Promise<string> {
  return waitFor('the agent to be ready', async () => {
    const { status, text } = await httpGet(`${adminUrl}/readyz`);
    return status === 200 ? text : undefined;
  });
}

async function keyIdInPlace(): Promise<string | undefined> {
  return (await readEnrolledKeyFile(keyFile())).state.enrolled?.key.keyId;
}

it('enrolls, answers probes, renews with the next token, and ends at once', async () => {
  await start({ approval: 'manual' });
  const agent = await startAgent();
  expect((await httpGet(`${agent.adminUrl}/livez`)).status).toBe(200);
  const waiting = await waitFor('it to wait for approval', async () => {
    const { status, text } = await httpGet(`${agent.adminUrl}/readyz`);
    return status === 503 && text.includes('enrollment_pending') ? JSON.parse(text) : undefined;
  });
  expect(waiting).toMatchObject({
    status: 'not_ready',
    checks: [{ name: 'key', ok: false }, { name: 'renewal' }],
  });
  control.approveAll();
  await ready(agent);
  expect(await keyIdInPlace()).toBe(control.keyIds[0]);
  const { text } = await httpGet(`${agent.adminUrl}/metrics`);
  expect(text).toMatch(/^proofgate_agent_enrollments_total\{outcome="enrolled"\} 1$/m);
  expect(text).toMatch(/^proofgate_agent_key_expires_at_seconds [0-9]{10}$/m);
  agent.child.signal('SIGTERM');
  expect(await agent.child.exited).toEqual({ code: 0, signal: null });
  expect((await readdir(join(folder, 'keys'))).filter((name) => name.includes('agent'))).toEqual([]);

  // The agent reuses a valid key and requests no other.
  const again = await startAgent();
  await ready(again);
  expect(control.enrollments.size).toBe(1);
  expect(again.child.stderrLines.join('\n')).toContain('"event":"key_taken_over"');
  const said = [...agent.child.stderrLines, ...again.child.stderrLines].join('\n');
  for (const secret of [...control.secrets, await readFile(join(folder, 'token'), 'utf8')])
    expect(said).not.toContain(secret);
});

it('keeps its key from `enroll`, which says whose it is and asks Control for nothing', async () => {
  await start();
  const agent = await startAgent();
  await ready(agent);
  const target = ['--control-url', control.url, '--policy', POLICY, '--proof-file', join(folder, 'token')];
  const enroll = ['enroll', ...target, '--private-key-out', keyFile()];
  expect(await runInProcess(enroll)).toMatchObject({ exitCode: 0 });
  expectCliError(await runInProcess([...enroll, '--force-reenroll']), 'key_kept_by_agent', 2);
  expect(control.enrollments.size).toBe(1);
  expect(await keyIdInPlace()).toBe(control.keyIds[0]);
});

it('with [::] it answers on every address, also of a machine that has no IPv6', async () => {
  await start();
  const everywhere = args().map((arg) => (arg === '127.0.0.1:0' ? '[::]:0' : arg));
  const dual = [process.execPath, LAUNCHER];
  const withoutIpv6 = ['python3', '-B', WITHOUT_IPV6, ...dual];
  const addresses: string[] = [];
  for (const [command = '', ...before] of [dual, withoutIpv6]) {
    const child = startChild({ command, args: [...before, ...everywhere] });
    children.push(child);
    const [, address = '', port = ''] = await child.waitForLine(
      /"event":"listening".*"admin_listen":"([^"]+):(\d+)"/,
    );
    addresses.push(address);
    for (const host of address === '[::]' ? ['[::1]', '127.0.0.1'] : ['127.0.0.1']) {
      expect((await httpGet(`http://${host}:${port}/livez`)).status).toBe(200);
    }
    await child.stop();
  }
  expect(addresses).toEqual([hasIpv6() ? '[::]' : '0.0.0.0', '0.0.0.0']);
});

function hasIpv6(): boolean {
  return Object.values(networkInterfaces()).some((found) => found?.some(({ family }) => family === 'IPv6'));
}

it('ends at once while Control does not answer, and the next one gets the one key', async () => {
  await start({ approval: 'manual' });
  const agent = await startAgent();
  await waitFor('an enrollment', () => (control.enrollments.size === 1 ? true : undefined));
  agent.child.signal('SIGTERM');
  expect(await agent.child.exited).toEqual({ code: 0, signal: null });
  control.approveAll();
  await ready(await startAgent());
  expect(control.enrollments.size).toBe(1);
  expect(await keyIdInPlace()).toBe(control.keyIds[0]);
});

it('is the only one to look after a key', async () => {
  await start();
  const agent = await startAgent();
  const run = await runCli(LAUNCHER, args(), { cwd: folder });
  expectCliError(run, 'agent_running', 2);
  await ready(agent);
  agent.child.signal('SIGKILL');
  await agent.child.exited;
  await ready(await startAgent());
});

it(
  'leaves a pair that belongs together whenever it is killed',
  async () => {
    await start({ maxKeyLifetimeSeconds: 3600 });
    const first = await startAgent();
    await ready(first);
    await first.child.stop();
    for (let i = 0; i < KILLS; i++) {
      await renewToken();
      // Enrolls again each time, so that the kill interrupts an enrollment.
      const child = spawn(process.execPath, [LAUNCHER, ...args('--force-reenroll')], { stdio: 'ignore' });
      await killAt(child, i);
      const settled = await settledKeyFile(keyFile());
      const { state, key } = await readEnrolledKeyFile(keyFile());
      expect([settled === keyFile(), state.keyThumbprint]).toEqual([false, key.publicKey.thumbprint]);
      expect(control.keyIds).toContain(state.enrolled?.key.keyId);
    }
    const last = await startAgent();
    await ready(last);
    await last.child.stop();
    const left = (await readdir(join(folder, 'keys'))).filter((name) => !/^\.key\.pem\.[0-9]+$/.test(name));
    expect(left.sort()).toEqual(['.key.pem.current', 'key.pem', 'key.pem.enrollment.json']);
    expect((await readdir(join(folder, 'keys'))).length - left.length).toBeLessThanOrEqual(3);
  },
  TIMEOUT_MS,
);

async function killAt(child: ChildProcess, index: number): Promise<void> {
  const gone = new Promise((resolve) => child.once('exit', resolve));
  try {
    await awaitProgress(child, index);
    expect(child.exitCode).toBeNull();
  } finally {
    child.kill('SIGKILL');
    await gone;
  }
}

/** Waits for the first, second or third request to Control, or a little longer, or for the replacement of the key pair. */
async function awaitProgress(child: ChildProcess, index: number): Promise<void> {
  const until = control.requests.length + 1 + (index % 4);
  const before = await currentFolder();
  const isPlaced = async () => (await currentFolder()) !== before || (await isPlacing());
  while (control.requests.length < until && !(await isPlaced()) && child.exitCode === null) {
    if (remainingMs(0) === 0) throw new Error('it does not come so far');
    // Not in a busy loop, which would take the processor from the agent.
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  if (index % 3 === 1) await new Promise((resolve) => setTimeout(resolve, index));
}

function currentFolder(): Promise<string> {
  return readlink(join(folder, 'keys', '.key.pem.current'));
}

async function isPlacing(): Promise<boolean> {
  return (await readdir(join(folder, 'keys'))).includes('.key.pem.link');
}
