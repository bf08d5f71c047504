/**
 * `make bench`, in two parts. What a delta costs on a large table, as a ratio to a small one (`delta-cost.ts`). And: server CPU of one check, as a ratio to floors measured in the same run: a bare grpc-js unary echo
 * of the same message, then with one Ed25519 verification by node:crypto a request, then with one `SET … NX PX` by
 * ioredis too. Floors and verifier are loaded alike, from this process; every request is different, signed, and
 * must be allowed. Rounds alternate, so that a machine whose speed drifts drifts for all of them; medians are
 * compared.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { startProofgate } from '../test/e2e/harness/sidecar.ts';
import { TestRedisServer } from '../test/fakes/redis-server.ts';
import { type DeltaCost, MOST_DELTA_RATIO, measureDeltaCost } from './delta-cost.ts';
import type { FloorJob } from './floors.ts';
import { cpuUsPerRequest, type GrpcTarget } from './load.ts';
import { type BenchWorld, createBenchWorld } from './world.ts';

const ROUNDS = 5;
const REQUESTS_A_ROUND = 20_000;
/** Most that a check may cost, as a multiple of its floor. */
const MOST_RATIO = 1.6;

type Store = 'memory' | 'redis';

/** What is measured, in the order of a round. */
const SUBJECTS = ['echo', 'echo_verify', 'memory', 'echo_verify_set', 'redis'] as const;
type Subject = (typeof SUBJECTS)[number];

/** Microseconds of CPU a request, one entry a round. */
type Samples = { readonly [S in Subject]: number[] };

async function main(): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'proofgate-bench-'));
  const redis = await TestRedisServer.start('--maxmemory-policy', 'noeviction');
  const children: ChildProcess[] = [];
  try {
    reportDeltas(await measureDeltaCost());
    const world = await createBenchWorld(directory);
    const samples: Samples = { echo: [], echo_verify: [], memory: [], echo_verify_set: [], redis: [] };
    for (let round = 1; round <= ROUNDS; round++) {
      process.stderr.write(`round ${round} of ${ROUNDS}\n`);
      await runRound(samples, world, { directory, redisUrl: redis.url, children });
    }
    report(samples);
  } finally {
    for (const child of children) child.kill();
    await redis.stop();
    await rm(directory, { recursive: true });
  }
}

interface RoundInputs {
  readonly directory: string;
  readonly redisUrl: string;
  readonly children: ChildProcess[];
}

async function runRound(samples: Samples, world: BenchWorld, inputs: RoundInputs): Promise<void> {
  const verify = world.signedTranscript();
  const { redisUrl } = inputs;
  samples.echo.push(await measureFloor(world, {}, inputs));
  samples.echo_verify.push(await measureFloor(world, { verify }, inputs));
  samples.memory.push(await measureCheck(world, 'memory', inputs));
  samples.echo_verify_set.push(await measureFloor(world, { verify, redisUrl }, inputs));
  samples.redis.push(await measureCheck(world, 'redis', inputs));
}

async function measureFloor(world: BenchWorld, job: FloorJob, { children }: RoundInputs): Promise<number> {
  const script = new URL('floors.js', import.meta.url).pathname;
  const child = spawn(process.execPath, [script, JSON.stringify(job)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  children.push(child);
  const { port } = await firstLine(child);
  const target: GrpcTarget = {
    pid: child.pid ?? 0,
    address: `127.0.0.1:${port}`,
    isGood: (answer) => answer.byteLength > 1000,
  };
  const cpuUs = await cpuUsPerRequest(target, world.encodedRequests(REQUESTS_A_ROUND));
  child.kill();
  return cpuUs;
}

async function measureCheck(
  world: BenchWorld,
  store: Store,
  { directory, redisUrl }: RoundInputs,
): Promise<number> {
  const stateDirectory = join(directory, `state-${store}`);
  await mkdir(stateDirectory, { recursive: true });
  const service = await startProofgate(
    [
      ...['verifier', '--auth-site', world.authSite, '--state-dir', stateDirectory],
      ...['--bundle', world.bundleDirectory, '--bundle-key', world.bundleKeyFile],
      ...['--listen', '127.0.0.1:0', '--admin-listen', '127.0.0.1:0'],
      ...['--replay', store === 'memory' ? 'memory' : redisUrl, '--redis-timeout', '5s'],
      ...['--audit-file', join(directory, `audit-${store}.jsonl`)],
    ],
    { readyUrl: (lines) => listening(lines, 'admin_listen', (address) => `http://${address}/readyz`) },
  );
  try {
    const address = listening(service.stderrLines, 'listen', (text) => text) ?? '';
    const target: GrpcTarget = { pid: service.pid, address, isGood: isAllowed };
    return await cpuUsPerRequest(target, world.encodedRequests(REQUESTS_A_ROUND));
  } finally {
    await service.stop();
  }
}

/** An allowed answer holds the context headers; a denial holds none of them. */
function isAllowed(answer: Buffer): boolean {
  return answer.includes('x-proofgate-decision-id') && !answer.includes('application/problem+json');
}

function listening<T>(lines: readonly string[], member: string, use: (address: string) => T): T | undefined {
  const line = lines.find((candidate) => candidate.includes('"msg":"listening"'));
  return line === undefined ? undefined : use(JSON.parse(line)[member]);
}

function firstLine(child: ChildProcess): Promise<Record<string, unknown>> {
  return new Promise((resolve, reject) => {
    if (child.stdout === null) throw new Error('no output to read');
    createInterface({ input: child.stdout }).once('line', (line) => resolve(JSON.parse(line)));
    child.once('exit', () => reject(new Error('a floor ended before it had measured')));
  });
}

const FLOOR_OF: { readonly [S in Store]: Subject } = { memory: 'echo_verify', redis: 'echo_verify_set' };

function report(samples: Samples): void {
  console.log(
    `\nCPU of the server, microseconds a request: median of ${ROUNDS} rounds of ${REQUESTS_A_ROUND} (least to most)`,
  );
  line('floor: bare grpc-js unary echo', samples.echo);
  line('floor: echo, Ed25519 verification', samples.echo_verify);
  line('check, replay in memory', samples.memory);
  line('floor: echo, verification, SET NX', samples.echo_verify_set);
  line('check, replay in Redis', samples.redis);
  for (const store of ['memory', 'redis'] as const) {
    const ratio = median(samples[store]) / median(samples[FLOOR_OF[store]]);
    const isEnough = ratio <= MOST_RATIO;
    const verdict = isEnough ? 'ok' : 'TOO MUCH';
    console.log(
      `ratio to the floor, ${store.padEnd(6)} ${ratio.toFixed(2)} (at most ${MOST_RATIO}): ${verdict}`,
    );
    if (!isEnough) process.exitCode = 1;
  }
}

function reportDeltas({ smallUs, largeUs }: DeltaCost): void {
  console.log('\nCPU of a delta, microseconds: one key put, one removed, one client changed (least to most)');
  line('onto 100 keys', smallUs);
  line('onto 100,000 keys', largeUs);
  const ratio = median(largeUs) / median(smallUs);
  const isEnough = ratio <= MOST_DELTA_RATIO;
  console.log(
    `ratio, 100,000 to 100 keys ${ratio.toFixed(2)} (at most ${MOST_DELTA_RATIO}): ${isEnough ? 'ok' : 'TOO MUCH'}`,
  );
  if (!isEnough) process.exitCode = 1;
}

function line(name: string, values: readonly number[]): void {
  const sorted = [...values].sort((a, b) => a - b);
  const [least = Number.NaN] = sorted;
  const most = sorted.at(-1) ?? Number.NaN;
  console.log(`${name.padEnd(34)} ${median(values).toFixed(1)} (${least.toFixed(1)} to ${most.toFixed(1)})`);
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

await main();
