/**
 * Tests graceful shutdown with one process and with workers (docs/operate/enforcement.md "Start and stop"): health fails at once, the
 * verifier answers Checks until its delay is over, and a signal to all processes at once loses no Check.
 */
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { CheckClient } from '../../support/harness/check-client.ts';
import { TestRedisServer } from '../../support/harness/redis-server.ts';
import { waitFor } from '../../support/wait.ts';
import { ProofSource } from '../replay/proof-source.ts';
import { isAlive, outcomeOf, type RunningWorkers, startWorkers } from './worker-fixture.ts';

const HEALTH = '/grpc.health.v1.Health/Check';
/** HealthCheckResponse: `status` is 2. */
const NOT_SERVING = '0802';

let redis: TestRedisServer;
let source: ProofSource;
const running: RunningWorkers[] = [];

beforeAll(async () => {
  redis = await TestRedisServer.start();
  source = await ProofSource.create();
});
afterAll(async () => {
  for (const workers of running) {
    try {
      signalGroup(workers, 'SIGKILL');
    } catch {
      // All of them have gone.
    }
    await workers.service.exited;
  }
  await source?.remove();
  await redis?.stop();
});

async function start(workers: number, flags: readonly string[]): Promise<RunningWorkers> {
  const options = { redisUrl: redis.url, workers, flags, ownProcessGroup: true };
  const started = await startWorkers(source, options);
  running.push(started);
  return started;
}

const signalGroup = ({ service }: RunningWorkers, signal: NodeJS.Signals) =>
  process.kill(-service.pid, signal);

/** Answers of health and of a Check on new connections. */
async function answersOf(workers: RunningWorkers, connections: number): Promise<readonly string[]> {
  const clients = Array.from({ length: connections }, () => workers.connect());
  try {
    return await Promise.all(
      clients.map(async (client) => {
        const health = await client.call(HEALTH, Buffer.alloc(0)).then(
          (bytes) => bytes.toString('hex'),
          () => 'no answer',
        );
        return `${health} ${await outcomeOf(client, source.mint())}`;
      }),
    );
  } finally {
    for (const client of clients) client.close();
  }
}

/** Sends until `stop()`, one Check after the other on each connection. */
class Load {
  readonly answered: string[] = [];
  readonly #clients: readonly CheckClient[];
  readonly #senders: readonly Promise<void>[];
  #isOver = false;

  constructor(workers: RunningWorkers, connections: number) {
    this.#clients = Array.from({ length: connections }, () => workers.connect());
    this.#senders = this.#clients.map((client) => this.#send(client));
  }

  async #send(client: CheckClient): Promise<void> {
    while (!this.#isOver) this.answered.push(await outcomeOf(client, source.mint()));
  }

  more(count: number): Promise<true> {
    const before = this.answered.length;
    return waitFor('more answers', () => this.answered.length >= before + count || undefined);
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#senders);
    for (const client of this.#clients) client.close();
  }
}

describe.each([1, 3])('%i process(es)', (count) => {
  it('of which all get the signal at once answer every Check of the delay, and record it', async () => {
    const workers = await start(count, ['--drain-delay', '10s']);
    const pids = workers.workerPids();
    const load = new Load(workers, 6);
    await load.more(200);
    // Whichever of them the signal reaches first.
    for (const pid of pids) process.kill(pid, 'SIGTERM');
    await load.more(100);
    signalGroup(workers, 'SIGTERM');
    await workers.becomes(503);
    await load.more(100);
    await load.stop();
    expect(await workers.service.exited).toEqual({ code: 0, signal: null });
    expect(pids.filter(isAlive)).toEqual([]);
    // On a busy machine a process may answer that it is overloaded.
    expect(load.answered).not.toContain('no answer');
    expect(load.answered.filter((outcome) => outcome === 'allowed').length).toBeGreaterThan(200);
    const recorded = readFileSync(workers.auditFile, 'utf8').split('\n').filter(Boolean);
    expect(recorded).toHaveLength(load.answered.length);
    expect(workers.service.stderrLines.filter((line) => line.includes('"level":"error"'))).toEqual([]);
  });

  it('report not serving, answer pending Checks, and end at once at the second signal', async () => {
    const workers = await start(count, ['--drain-delay', '1h']);
    const pids = workers.workerPids();
    signalGroup(workers, 'SIGINT');
    const { text } = await workers.becomes(503);
    const listener = JSON.parse(text).checks.find(({ name }: { name: string }) => name === 'listener');
    expect(listener).toMatchObject({ ok: false, problem: expect.stringContaining('draining') });
    await waitFor('all to say no', async () => {
      const answers = await answersOf(workers, 2 * count);
      return answers.every((answer) => answer === `${NOT_SERVING} allowed`) || undefined;
    });
    // The other one changes nothing: supervisors send both.
    signalGroup(workers, 'SIGTERM');
    const answers = await answersOf(workers, 2 * count);
    expect(answers.filter((answer) => answer.endsWith('no answer'))).toEqual([]);
    signalGroup(workers, 'SIGINT');
    // By its own doing: to the first process of a container a signal's default does nothing.
    expect(await workers.service.exited).toEqual({ code: 130, signal: null });
    await waitFor('all to be gone', () => pids.every((pid) => !isAlive(pid)) || undefined);
  });
});

it('a worker that dies or hangs within the delay is replaced, and the new one says no too', async () => {
  const workers = await start(2, ['--drain-delay', '1h']);
  const [first = 0, second = 0] = workers.workerPids();
  workers.service.signal('SIGTERM');
  await workers.becomes(503);
  process.kill(first, 'SIGKILL');
  process.kill(second, 'SIGSTOP');
  await waitFor('others in their place', () => {
    const pids = workers.workerPids();
    return (pids.length === 2 && !pids.includes(first) && !pids.includes(second)) || undefined;
  });
  const health = new Set<string>();
  await waitFor('both to answer', async () => {
    const answers = await answersOf(workers, 4);
    for (const answer of answers) health.add(answer.split(' ')[0] ?? '');
    return answers.every((answer) => answer === `${NOT_SERVING} allowed`) || undefined;
  });
  // Neither reported healthy, not even for a moment.
  expect(health).toEqual(new Set([NOT_SERVING]));
  expect((await workers.get('/readyz')).status).toBe(503);
  workers.service.signal('SIGTERM');
  await workers.service.exited;
});
