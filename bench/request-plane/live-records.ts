/** Measures the memory of a replay record in the embedded store and in Redis. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { createRedisReplayStore } from '../../src/verifier/replay/redis.ts';
import type { ReplayStore } from '../../src/verifier/replay/store.ts';
import { TestRedisServer } from '../../test/support/harness/redis-server.ts';
import { waitFor } from '../../test/support/wait.ts';
import { figure, type Part, type PartResult } from '../report.ts';
import { claimOf } from './replay-claims.ts';

const EMBEDDED_RECORDS = 1_000_000;
const REDIS_RECORDS = 200_000;
const IN_FLIGHT = 200;
const MOST_EMBEDDED_BYTES = 120;
const MOST_REDIS_BYTES = 190;

export const liveRecords: Part = {
  name: 'records',
  title: `memory of a live jti: ${EMBEDDED_RECORDS} in the embedded store (resident), ${REDIS_RECORDS} in Redis (used_memory)`,
  run: measure,
};

async function measure(): Promise<PartResult> {
  const redis = await bytesInRedis();
  const embedded = await bytesInProcess();
  return {
    figures: [
      figure('embedded, bytes a record', 'bytes', [embedded]),
      figure('Redis, bytes a record', 'bytes', [redis]),
    ],
    bounds: [
      { name: 'embedded', value: embedded, atMost: MOST_EMBEDDED_BYTES },
      { name: 'Redis', value: redis, atMost: MOST_REDIS_BYTES },
    ],
  };
}

/** Runs in a process of its own, so that earlier allocations do not distort it. */
async function bytesInProcess(): Promise<number> {
  const script = fileURLToPath(new URL('embedded-records.js', import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, [script, String(EMBEDDED_RECORDS)]);
  return Number(stdout);
}

async function bytesInRedis(): Promise<number> {
  const server = await TestRedisServer.start('--maxmemory-policy', 'noeviction');
  const store = createRedisReplayStore({
    url: server.url,
    timeoutMs: 5000,
    holderQuotaPerMinute: REDIS_RECORDS,
  });
  try {
    await waitFor('the store to be ready', async () => (store.health().ready ? true : undefined));
    const before = await usedMemory(server);
    await fill(store);
    return ((await usedMemory(server)) - before) / REDIS_RECORDS;
  } finally {
    await store.close();
    await server.stop();
  }
}

async function fill(store: ReplayStore): Promise<void> {
  let next = 0;
  const worker = async () => {
    while (next < REDIS_RECORDS) {
      const outcome = await store.consume(claimOf(next++, Math.floor(Date.now() / 1000)));
      if (outcome.kind !== 'consumed') throw new Error(`void run: ${JSON.stringify(outcome)}`);
    }
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, worker));
}

async function usedMemory(server: TestRedisServer): Promise<number> {
  return Number(/used_memory:(\d+)/.exec(await server.command('INFO', 'memory'))?.[1]);
}
