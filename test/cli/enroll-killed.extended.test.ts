/**
 * Kills the shipped program with SIGKILL at every step, behind a proxy that loses, delays and throttles requests. A second run
 * of the same command line ends with one key.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { LAUNCHER } from '../support/cli/compiled-cli.ts';
import { runInProcess } from '../support/cli/in-process.ts';
import { expectNoStackTrace } from '../support/cli/run-cli.ts';
import { FakeControl, type FakeControlOptions, POLICY } from '../support/fakes/control-enrollment.ts';
import {
  type Exchange,
  type Fault,
  type LossyProxy,
  startLossyProxy,
} from '../support/harness/lossy-proxy.ts';

/** After a time, each. `make soak` kills more often. */
const KILLS = Number(process.env.PROOFGATE_TEST_KILLS ?? 6);
const TIMEOUT_MS = 300_000 + KILLS * 5_000;
let folder = '';
let control: FakeControl;
let proxy: LossyProxy;
let faultOf: (exchange: Exchange) => Fault | Promise<Fault>;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'proofgate-killed-'));
  faultOf = () => 'pass';
});
afterEach(async () => {
  await proxy.close();
  await control.close();
  await rm(folder, { recursive: true, force: true });
});

async function start(options: FakeControlOptions = {}): Promise<void> {
  control = await FakeControl.start({ publicUrls: () => [proxy.url], ...options });
  proxy = await startLossyProxy(
    () => control.url,
    (exchange) => faultOf(exchange),
  );
  await writeFile(join(folder, 'token'), await control.token());
}

function args(policy = POLICY): readonly string[] {
  const target = ['--control-url', proxy.url, '--policy', policy, '--proof-file', join(folder, 'token')];
  const key = ['--private-key-out', join(folder, 'key.pem')];
  return ['enroll', ...target, ...key, '--poll-interval', '20ms', '--output', 'json'];
}

/** To its end, which needs no process of its own. */
function run(policy = POLICY) {
  return runInProcess(args(policy));
}

function spawnRun(): ChildProcess {
  return spawn(process.execPath, [LAUNCHER, ...args()], {
    cwd: folder,
    env: { PATH: process.env.PATH },
    stdio: 'ignore',
  });
}

/** @returns after the process has exited */
async function kill(child: ChildProcess): Promise<void> {
  const gone = new Promise((resolve) => child.once('exit', resolve));
  if (child.exitCode === null && child.signalCode === null) {
    child.kill('SIGKILL');
    await gone;
  }
}

async function expectOneKey(): Promise<void> {
  const again = await run();
  expectNoStackTrace(again);
  expect(again).toMatchObject({ exitCode: 0 });
  await proxy.settled();
  expect(control.enrollments.size).toBe(1);
  const [enrollment] = control.enrollments.values();
  expect(JSON.parse(again.stdout)).toMatchObject({
    status: 'active',
    key_id: enrollment?.keyId,
    fingerprint: enrollment?.key.thumbprint,
  });
  // A later run removes temporary files that are ten minutes old: another process may still write a younger one.
  const files = (await readdir(folder)).filter(
    (name) => !/^\.key\.pem\.enrollment\.json\.[0-9a-f]+$/.test(name),
  );
  expect(files.sort()).toEqual(['key.pem', 'key.pem.enrollment.json', 'token']);
}

/** Step at which the process is killed: how far its request number `index` has come. */
const STEPS = [
  { at: 'the challenge is asked for', index: 0, fault: 'reset_before' },
  { at: 'the challenge was made', index: 0, fault: 'hold_answer' },
  { at: 'the submission is on its way', index: 1, fault: 'reset_before' },
  { at: 'the submission arrives later', index: 1, fault: 'arrive_late' },
  { at: 'the submission was accepted', index: 1, fault: 'hold_answer' },
  { at: 'it polls', index: 2, fault: 'reset_before' },
  { at: 'the poll was answered', index: 2, fault: 'hold_answer' },
  { at: 'it polls again', index: 3, fault: 'hold_answer' },
] as const;

it('a key that something may have been issued to is for its Control and policy alone', async () => {
  await start();
  faultOf = ({ index }) => (index >= 1 ? 'drop_answer' : 'pass');
  expect((await run()).stderr).toContain('submission_unconfirmed');
  faultOf = () => 'pass';
  await writeFile(join(folder, 'token'), await control.token());
  expect((await run('epr_other')).stderr).toContain('file_exists');
  expect(await run()).toMatchObject({ exitCode: 0 });
  expect(control.enrollments.size).toBe(1);
});

describe('killed', () => {
  it.each(STEPS)('when $at', async ({ index, fault }) => {
    await start({ approval: 'manual' });
    const arrived = new Promise<void>((resolve) => {
      faultOf = (exchange) => {
        if (exchange.index === 3) control.approveAll();
        if (exchange.index !== index) return 'pass';
        resolve();
        // The proxy applies this fault only after the process has exited.
        return fault === 'reset_before' ? killed.then(() => fault) : fault;
      };
    });
    let tellKilled: () => void = () => {};
    const killed = new Promise<void>((resolve) => {
      tellKilled = resolve;
    });
    const child = spawnRun();
    await arrived;
    await kill(child);
    tellKilled();
    await proxy.settled();
    faultOf = (exchange) => {
      if (exchange.method === 'GET') control.approveAll();
      return 'pass';
    };
    await expectOneKey();
  });

  it(
    'after any number of milliseconds, again and again',
    async () => {
      await start();
      for (let i = 0; i < KILLS; i++) {
        const child = spawnRun();
        const wait = 60 + ((i * 33) % 180);
        await new Promise((resolve) => setTimeout(resolve, wait));
        await kill(child);
      }
      await expectOneKey();
      expect(control.distinctSubmissions).toBe(1);
    },
    TIMEOUT_MS,
  );

  it('again and again while its token is replaced, and the answers are lost', async () => {
    await start();
    for (let run = 0; run < 6; run++) {
      const arrived = new Promise<void>((resolve) => {
        faultOf = ({ method, path }) => {
          if (method !== 'POST' || path !== '/v1/enrollments') return 'pass';
          resolve();
          return 'hold_answer';
        };
      });
      const child = spawnRun();
      await arrived;
      await kill(child);
      await proxy.settled();
      await writeFile(join(folder, 'token'), await control.token());
    }
    faultOf = () => 'pass';
    await expectOneKey();
    expect(control.distinctSubmissions).toBe(7);
  });

  it('while it writes its first files, whatever is there afterwards', async () => {
    await start();
    let watched = 0;
    for (let i = 0; i < 6; i++) {
      const child = spawnRun();
      const seen = watched;
      while (child.exitCode === null && (await readdir(folder)).length <= 1 + seen) {
        await new Promise((resolve) => setImmediate(resolve));
      }
      await kill(child);
      watched = Math.min((await readdir(folder)).length - 1, 2);
    }
    await expectOneKey();
  });
});

describe('behind a lossy proxy', () => {
  it.each<readonly [string, readonly Fault[]]>([
    ['drops every first answer', ['drop_answer', 'pass', 'drop_answer', 'pass']],
    ['throttles after Control acted', ['pass', 'throttle_after', 'pass']],
    ['resets, then cuts short', ['reset_after', 'truncate', 'pass', 'truncate', 'reset_after', 'pass']],
    ['garbles, then says 504', ['garble', 'pass', 'garble', 'gateway_timeout', 'pass']],
  ])('that %s, gets the one key', async (_what, faults) => {
    await start();
    faultOf = ({ index }) => faults[index] ?? 'pass';
    const first = await run();
    expect(first.exitCode).toBe(0);
    await expectOneKey();
  });

  it('that never lets a submission be answered, ends with 4; the next run gets the one key', async () => {
    await start();
    faultOf = ({ index }) => (index === 0 ? 'pass' : 'drop_answer');
    const lost = await run();
    expect(lost).toMatchObject({ exitCode: 4, stdout: '' });
    expect(lost.stderr).toMatch(/\{"error":"submission_unconfirmed","message":"[^"]+"\}\n$/);
    faultOf = () => 'pass';
    await expectOneKey();
    const token = await readFile(join(folder, 'token'), 'utf8');
    expect(lost.stderr).not.toContain(token);
  });
});
