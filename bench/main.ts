/**
 * `make bench`: server CPU of one check, as a ratio to floors measured in the same run. The floor is a bare
 * grpc-js unary echo of the same message, plus one Ed25519 verification by node:crypto, plus (with Redis) one
 * `SET … NX PX` by ioredis. Every request is different, signed, and must be allowed. Rounds alternate, so that
 * a machine whose speed drifts drifts for all of them; medians are compared.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { startProofgate } from '../test/e2e/harness/sidecar.ts';
import { TestRedisServer } from '../test/fakes/redis-server.ts';
import { cpuUsPerRequest, type GrpcTarget } from './load.ts';
import { type BenchWorld, createBenchWorld } from './world.ts';

const ROUNDS = 5;
const REQUESTS_A_ROUND = 20_000;
/** Most that a check may cost, as a multiple of its floor. */
const MOST_RATIO = 1.6;

type Store = 'memory' | 'redis';

/** Microseconds of CPU, one entry a round. */
interface Samples {
  readonly echo: number[];
  readonly verification: number[];
  readonly redisSet: number[];
  readonly check: { readonly [S in Store]: number[] };
}

async function main(): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'proofgate-bench-'));
  const redis = await TestRedisServer.start('--maxmemory-policy', 'noeviction');
  const children: ChildProcess[] = [];
  try {
    const world = await createBenchWorld(directory);
    const samples: Samples = { echo: [], verification: [], redisSet: [], check: { memory: [], redis: [] } };
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
  samples.echo.push(await measureEcho(world, inputs));
  samples.verification.push(await measureVerification(world, inputs));
  samples.check.memory.push(await measureCheck(world, 'memory', inputs));
  samples.redisSet.push(await measureRedisSet(inputs));
  samples.check.redis.push(await measureCheck(world, 'redis', inputs));
}

async function measureEcho(world: BenchWorld, { children }: RoundInputs): Promise<number> {
  const child = startFloor(['echo'], children);
  const { port } = await nextLine(child);
  const target: GrpcTarget = {
    pid: child.pid ?? 0,
    address: `127.0.0.1:${port}`,
    isGood: (answer) => answer.byteLength > 1000,
  };
  const cpuUs = await cpuUsPerRequest(target, world.encodedRequests(REQUESTS_A_ROUND));
  child.kill();
  return cpuUs;
}

async function measureVerification(world: BenchWorld, { children }: RoundInputs): Promise<number> {
  const { holder, message, signature } = world.signedTranscript();
  const child = startFloor(['verify'], children);
  const job = {
    count: REQUESTS_A_ROUND,
    jwk: holder.publicKey.jwk,
    message: message.toString('base64url'),
    signature: signature.toString('base64url'),
  };
  return finishFloor(child, job);
}

function measureRedisSet({ redisUrl, children }: RoundInputs): Promise<number> {
  return finishFloor(startFloor(['redis', redisUrl], children), { count: REQUESTS_A_ROUND });
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

function startFloor(args: readonly string[], children: ChildProcess[]): ChildProcess {
  const script = new URL('floors.js', import.meta.url).pathname;
  const child = spawn(process.execPath, [script, ...args], { stdio: ['pipe', 'pipe', 'inherit'] });
  children.push(child);
  return child;
}

async function finishFloor(child: ChildProcess, job: object): Promise<number> {
  child.stdin?.end(`${JSON.stringify(job)}\n`);
  const { cpuUs } = await nextLine(child);
  return Number(cpuUs);
}

function nextLine(child: ChildProcess): Promise<Record<string, unknown>> {
  return new Promise((resolve, reject) => {
    if (child.stdout === null) throw new Error('no output to read');
    createInterface({ input: child.stdout }).once('line', (line) => resolve(JSON.parse(line)));
    child.once('exit', () => reject(new Error('a floor ended before it had measured')));
  });
}

function report({ check, echo, redisSet, verification }: Samples): void {
  const memoryFloor = median(echo) + median(verification);
  const floors: { readonly [S in Store]: number } = {
    memory: memoryFloor,
    redis: memoryFloor + median(redisSet),
  };
  console.log(
    `\nCPU of the server, microseconds, median of ${ROUNDS} rounds of ${REQUESTS_A_ROUND} requests (least to most)`,
  );
  line('floor: bare grpc-js unary echo', echo);
  line('floor: one Ed25519 verification', verification);
  line('floor: one SET NX PX by ioredis', redisSet);
  line('check, replay in memory', check.memory);
  line('check, replay in Redis', check.redis);
  const ratios = (['memory', 'redis'] as const).map((store) => ({
    store,
    ratio: median(check[store]) / floors[store],
  }));
  for (const { ratio, store } of ratios) {
    const verdict = ratio <= MOST_RATIO ? 'ok' : 'TOO MUCH';
    console.log(
      `ratio to the floor, ${store.padEnd(6)} ${ratio.toFixed(2)} (at most ${MOST_RATIO}): ${verdict}`,
    );
  }
  if (ratios.some(({ ratio }) => !(ratio <= MOST_RATIO))) process.exitCode = 1;
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
