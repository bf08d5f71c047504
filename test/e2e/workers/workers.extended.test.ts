/**
 * Tests several verifier processes behind one address: how work is distributed, what is accepted, and what happens when one
 * dies.
 */
import { execFileSync } from 'node:child_process';
import { appendFileSync, existsSync, readdirSync, readFileSync } from 'node:fs';
import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { codesIn, readText, tableNamed } from '../../support/docs/markdown.ts';
import type { CheckClient } from '../../support/harness/check-client.ts';
import { TestRedisServer } from '../../support/harness/redis-server.ts';
import { waitFor } from '../../support/wait.ts';
import { ProofSource } from '../replay/proof-source.ts';
import {
  decisionsByWorker,
  isAlive,
  outcomeOf,
  type RunningWorkers,
  runToEnd,
  startWorkers,
  verifierArgs,
} from './worker-fixture.ts';

const WORKERS = 3;
const CONNECTIONS = 6;
const PROOFS = 20;
const TORN = '{"event":"proofgate.decision","ti';
const COPIES = 64;
/** Between two proofs of a connection, while workers die and start. */
const PACE_MS = 16;
/** On a busy machine a process may answer that it is overloaded. */
const REFUSED = ['jti_replay 403', 'verifier_unavailable/overloaded 503'];

let redis: TestRedisServer;
let source: ProofSource;
const running: RunningWorkers[] = [];

beforeAll(async () => {
  redis = await TestRedisServer.start();
  source = await ProofSource.create();
});
afterAll(async () => {
  await Promise.all(
    running.map(({ service }) => service.exitStatus() ?? service.stop().catch(() => undefined)),
  );
  await source?.remove();
  await redis?.stop();
});

async function start(options: Partial<Parameters<typeof startWorkers>[1]> = {}): Promise<RunningWorkers> {
  const started = await startWorkers(source, { redisUrl: redis.url, workers: WORKERS, ...options });
  running.push(started);
  return started;
}

function connections(workers: RunningWorkers, count = CONNECTIONS): readonly CheckClient[] {
  return Array.from({ length: count }, () => workers.connect());
}

function closeAll(clients: readonly CheckClient[]): void {
  for (const client of clients) client.close();
}

const lines = (file: string) =>
  existsSync(file) ? readFileSync(file, 'utf8').split('\n').filter(Boolean) : [];

describe('one address, several processes', () => {
  let workers: RunningWorkers;
  let clients: readonly CheckClient[];
  beforeAll(async () => {
    workers = await start();
    clients = connections(workers);
  });
  afterAll(async () => {
    closeAll(clients ?? []);
    await workers?.service.stop();
  });

  it('each gets its share of connections, and the metrics say so', async () => {
    expect(workers.workerPids()).toHaveLength(WORKERS);
    const sent = CONNECTIONS * 20;
    const proofs = Array.from({ length: sent }, () => source.mint());
    const outcomes = await Promise.all(
      proofs.map((proof, at) => outcomeOf(clients[at % CONNECTIONS] as CheckClient, proof)),
    );
    expect(new Set(outcomes)).toEqual(new Set(['allowed']));
    const { text } = await workers.get('/metrics');
    const counts = decisionsByWorker(text);
    expect([...counts.keys()].sort()).toEqual(['1', '2', '3']);
    const shares = [...counts.values()];
    expect(shares.reduce((sum, share) => sum + share)).toBe(sent);
    // Connections go round in turns; on a busy machine one of them may come out of turn.
    expect(Math.min(...shares)).toBeGreaterThanOrEqual(sent / CONNECTIONS);
    expect(text).toContain('proofgate_workers_running{worker="primary"} 3');
    expect(text.match(/^# TYPE proofgate_decisions_total /gm)).toHaveLength(1);
    expect(text).toContain('proofgate_ready{check="workers",worker="primary"} 1');
    expect(text).toContain('proofgate_ready{check="replay_store",worker="2"} 1');
  });

  it('metrics are those of the reference, with the type that it says', async () => {
    const { text } = await workers.get('/metrics');
    const shown = [...text.matchAll(/^# TYPE ((?:proofgate|grpc)_\S+) (\S+)$/gm)];
    const documented = new Map(
      tableNamed(readText('docs/reference/metrics.md'), 'metrics').map(([name, type = '']) => [
        codesIn(name)[0],
        type.split(':')[0],
      ]),
    );
    expect(shown.map(([, name]) => name)).toEqual(
      expect.arrayContaining(['proofgate_workers_running', 'proofgate_worker_restarts_total']),
    );
    for (const [, name, type] of shown) expect([name, documented.get(name)]).toEqual([name, type]);
  });

  it('each says once that it listens, the primary where', async () => {
    const said = workers.service.stderrLines.map((line) => JSON.parse(line));
    const started = said.filter(({ msg }) => /^(?:worker )?listening$/.test(msg));
    const lines = started.map(({ admin_listen, msg, worker }) => [msg, worker, typeof admin_listen]);
    expect(lines.toSorted()).toEqual([
      ['listening', undefined, 'string'],
      ['worker listening', 1, 'undefined'],
      ['worker listening', 2, 'undefined'],
      ['worker listening', 3, 'undefined'],
    ]);
  });

  it(`of ${COPIES} copies of a proof one is accepted, whichever processes they reach`, async () => {
    for (let round = 0; round < PROOFS / 2; round++) {
      const proofs = Array.from({ length: 2 }, () => source.mint());
      const copies = Array.from({ length: COPIES }, (_, at) => clients[at % CONNECTIONS] as CheckClient);
      const answers = await Promise.all(
        proofs.map((proof) => Promise.all(copies.map((client) => outcomeOf(client, proof)))),
      );
      for (const outcomes of answers) {
        expect(outcomes.filter((outcome) => outcome === 'allowed')).toHaveLength(1);
        expect([...new Set(outcomes)].filter((outcome) => !REFUSED.includes(outcome))).toEqual(['allowed']);
      }
    }
  });

  it('records each decision in the one audit file, a line each', async () => {
    const decided = [...decisionsByWorker((await workers.get('/metrics')).text).values()].reduce(
      (a, b) => a + b,
    );
    expect(decided).toBeGreaterThan(PROOFS * COPIES * 0.9);
    const recorded = await waitFor('the audit file to be complete', async () => {
      const found = lines(workers.auditFile);
      return found.length >= decided ? found : undefined;
    });
    const ids = recorded.map((line) => JSON.parse(line).decision_id);
    expect(new Set(ids).size).toBe(decided);
  });

  it('when they die under load, one after the other, nothing is accepted twice, and all serve again', async () => {
    const accepted = new Map<string, number>();
    const outcomes = new Map<string, number>();
    let isOver = false;
    const load = clients.map(async (client, at) => {
      const other = clients[(at + 1) % CONNECTIONS] as CheckClient;
      while (!isOver) {
        const proof = source.mint();
        for (const outcome of await Promise.all([client, other].map((via) => outcomeOf(via, proof)))) {
          outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
          if (outcome === 'allowed') accepted.set(proof.jti, (accepted.get(proof.jti) ?? 0) + 1);
        }
        await pause(PACE_MS);
      }
    });
    for (const pid of workers.workerPids()) {
      const before = accepted.size;
      process.kill(pid, 'SIGKILL');
      await workers.becomes(503);
      await workers.becomes(200);
      await waitFor('accepts to go on', async () => accepted.size > before + 50 || undefined);
      expect(workers.workerPids()).toHaveLength(WORKERS);
      expect(workers.workerPids()).not.toContain(pid);
    }
    isOver = true;
    await Promise.all(load);
    expect([...accepted.values()].filter((times) => times > 1)).toEqual([]);
    expect([...outcomes.keys()].filter((outcome) => !KNOWN.includes(outcome))).toEqual([]);
    const { text } = await workers.get('/metrics');
    expect(text).toContain(`proofgate_worker_restarts_total{worker="primary"} ${WORKERS}`);
  });
});

describe('files that several processes write', () => {
  let directory: string;
  let workers: RunningWorkers;
  beforeAll(async () => {
    directory = await mkdtemp(join(source.directory, 'denied-'));
    workers = await start({ flags: ['--capture-denied', directory] });
  });
  afterAll(() => workers?.service.stop());

  it('SIGHUP to the primary has all of them open the audit file anew', async () => {
    const clients = connections(workers, WORKERS);
    const send = () => Promise.all(clients.map((client) => outcomeOf(client, source.mint())));
    expect(new Set(await send())).toEqual(new Set(['allowed']));
    const rotated = `${workers.auditFile}.1`;
    await waitFor('the first events', async () => lines(workers.auditFile).length === WORKERS || undefined);
    await rename(workers.auditFile, rotated);
    workers.service.signal('SIGHUP');
    await waitFor('all to say so', async () => {
      const said = workers.service.stderrLines.filter((line) =>
        line.includes('audit file reopened by signal'),
      );
      return new Set(said.map((line) => JSON.parse(line).worker)).size === WORKERS || undefined;
    });
    // A process killed within a write leaves half a line: the next writer starts a new line.
    appendFileSync(workers.auditFile, TORN);
    await send();
    await waitFor(
      'the next events',
      async () => lines(workers.auditFile).length === WORKERS + 1 || undefined,
    );
    const whole = lines(workers.auditFile).filter((line) => line !== TORN);
    expect(whole.map((line) => JSON.parse(line).outcome)).toEqual(Array(WORKERS).fill('allowed'));
    expect(lines(rotated)).toHaveLength(WORKERS);
    closeAll(clients);
  });

  it('all write captured denials to one directory', async () => {
    const clients = connections(workers);
    const proof = source.mint();
    const outcomes: string[] = [];
    for (const client of clients) outcomes.push(await outcomeOf(client, proof));
    expect(outcomes).toEqual(['allowed', ...Array(CONNECTIONS - 1).fill('jti_replay 403')]);
    const written = /^proofgate_denied_captures_total\{outcome="written",worker="(\d)"\} ([1-9]\d*)$/gm;
    const counts = await waitFor('the captures', async () => {
      const found = [...(await workers.get('/metrics')).text.matchAll(written)];
      const sum = found.reduce((total, [, , count]) => total + Number(count), 0);
      return sum === CONNECTIONS - 1 ? found : undefined;
    });
    expect(counts.length).toBeGreaterThan(1);
    expect(readdirSync(directory)).toHaveLength(CONNECTIONS - 1);
    closeAll(clients);
  });
});

describe('when workers die', () => {
  let trail: string;
  let workers: RunningWorkers;
  beforeAll(async () => {
    trail = await mkdtemp(join(source.directory, 'trail-'));
    workers = await start({ workers: 2, auditFile: join(trail, 'audit.jsonl') });
  });

  it('one that hangs is not ready, and is replaced', async () => {
    const [pid = 0] = workers.workerPids();
    process.kill(pid, 'SIGSTOP');
    const { text } = await workers.becomes(503);
    expect(JSON.parse(text).checks).toContainEqual({
      name: 'workers',
      ok: false,
      problem: expect.stringContaining('1 of 2'),
    });
    await workers.becomes(200);
    expect(workers.workerPids()).not.toContain(pid);
  });

  it('one that cannot start again is tried again, and readiness fails meanwhile', async () => {
    await rm(trail, { recursive: true });
    const [pid = 0] = workers.workerPids();
    process.kill(pid, 'SIGKILL');
    await workers.service.waitForLine(/"code":"audit_file_unusable"/);
    await workers.service.waitForLine(/"restart_ms":400/);
    const { status, text } = await workers.get('/readyz');
    expect(status).toBe(503);
    expect(text).toContain('1 of 2 workers do not run');
    const client = workers.connect();
    expect(await outcomeOf(client, source.mint())).toBe('allowed');
    client.close();
    await mkdir(trail);
    await workers.becomes(200);
  });

  it('without the primary there are none', async () => {
    const pids = workers.workerPids();
    expect(pids).toHaveLength(2);
    workers.service.signal('SIGKILL');
    await waitFor('all to be gone', async () => pids.every((pid) => !isAlive(pid)) || undefined);
  });
});

const KNOWN = ['allowed', ...REFUSED, 'no answer', 'replay_store_unavailable/store 503'];

describe('an orderly end', () => {
  it('answers what is in flight, on a Unix socket too, and records it on standard output line by line', async () => {
    const socket = join(source.directory, 'verifier.sock');
    const workers = await start({ listen: `unix:${socket}`, auditFile: '-' });
    const clients = connections(workers, WORKERS);
    const pids = workers.workerPids();
    const answered: string[] = [];
    let isOver = false;
    const load = clients.map(async (client) => {
      while (!isOver) answered.push(await outcomeOf(client, source.mint()));
    });
    await waitFor('some answers', async () => answered.length > 300 || undefined);
    const stopped = workers.service.stop();
    await waitFor('the ext_authz server to close', async () => answered.includes('no answer') || undefined);
    isOver = true;
    await Promise.all([stopped, ...load]);
    closeAll(clients);
    expect(pids.filter(isAlive)).toEqual([]);
    const decided = answered.filter((outcome) => outcome === 'allowed').length;
    const events = workers.service.stdoutLines.map((line) => JSON.parse(line));
    expect(events.filter(({ outcome }) => outcome === 'allowed')).toHaveLength(decided);
    // No process is left that holds the address.
    const again = await start({ workers: 2, listen: `unix:${socket}`, auditFile: '-' });
    await again.service.stop();
  });
});

describe('what is refused at the start', () => {
  const folder = () => source.directory;
  it.each([
    ['memory', 'workers_need_redis', ['--audit-file', '/dev/null'], 'memory'],
    [
      'an audit trail that is required, on standard output',
      'workers_need_audit_file',
      ['--audit', 'required'],
      undefined,
    ],
    ['an audit file that is none', 'workers_need_audit_file', ['--audit-file', '/dev/null'], undefined],
    ['an address that is taken', 'listen_failed', ['--listen', 'redis'], undefined],
    ['no worker', 'out_of_range', ['--workers', '0'], undefined],
  ] as const)('%s: %s', async (_, code, flags, replay) => {
    const taken = flags.map((flag) => (flag === 'redis' ? `127.0.0.1:${redis.port}` : flag));
    const workers = flags.includes('--workers' as never) ? [] : ['--workers', '2'];
    const args = [
      ...verifierArgs(source, folder()),
      ...workers,
      '--log-level',
      'silent',
      '--admin-listen',
      '127.0.0.1:0',
      ...taken,
    ];
    const { code: exit, stderr } = await runToEnd(args, replay ?? redis.url);
    expect(stderr).toEqual([expect.stringMatching(new RegExp(`^error: ${code}: `))]);
    expect(exit).toBe(2);
  });

  it('leaves no process behind', () => {
    const all = execFileSync('ps', ['-eo', 'args'], { encoding: 'utf8' });
    expect(
      all.split('\n').filter((line) => line.includes(folder()) && line.includes('--log-level silent')),
    ).toEqual([]);
  });
});
