/** What a remembered proof costs in memory: in the embedded store, and in Redis. */
import { hash } from 'node:crypto';
import { createMemoryReplayStore } from '../../src/verifier/replay/memory.ts';
import { createRedisReplayStore } from '../../src/verifier/replay/redis.ts';
import type { ReplayClaim, ReplayStore } from '../../src/verifier/replay/store.ts';
import { waitFor } from '../../test/e2e/harness/wait.ts';
import { TestRedisServer } from '../../test/fakes/redis-server.ts';
import { figure, type Part, type PartResult } from '../report.ts';
import { residentMib } from './scale.ts';

const EMBEDDED_RECORDS = 1_000_000;
const REDIS_RECORDS = 200_000;
const IN_FLIGHT = 200;
const HOLDERS = 100;
const MOST_EMBEDDED_BYTES = 120;
const MOST_REDIS_BYTES = 190;
const MIB = 1024 * 1024;

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

async function bytesInProcess(): Promise<number> {
  // The fence at the start of the store is over by the time that its claims state.
  const store = createMemoryReplayStore({
    maxRecords: EMBEDDED_RECORDS,
    holderQuotaPerMinute: EMBEDDED_RECORDS,
  });
  globalThis.gc?.();
  const beforeMib = residentMib(process.pid);
  const nowSeconds = Math.floor(Date.now() / 1000) + 10;
  for (let index = 0; index < EMBEDDED_RECORDS; index++) {
    const outcome = await store.consume(claim(index, nowSeconds));
    if (outcome.kind !== 'consumed') throw new Error(`void run: ${JSON.stringify(outcome)}`);
  }
  globalThis.gc?.();
  const bytes = ((residentMib(process.pid) - beforeMib) * MIB) / EMBEDDED_RECORDS;
  await store.close();
  return bytes;
}

async function bytesInRedis(): Promise<number> {
  const server = await TestRedisServer.start('--maxmemory-policy', 'noeviction');
  const store = createRedisReplayStore({
    url: server.url,
    timeoutMs: 5000,
    holderQuotaPerMinute: REDIS_RECORDS,
  });
  try {
    await waitFor('the store to be ready', 30_000, async () => (store.health().ready ? true : undefined));
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
      const outcome = await store.consume(claim(next++, Math.floor(Date.now() / 1000)));
      if (outcome.kind !== 'consumed') throw new Error(`void run: ${JSON.stringify(outcome)}`);
    }
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, worker));
}

function claim(index: number, nowSeconds: number): ReplayClaim {
  return {
    identifier: hash('sha256', `record-${index}`, 'base64url'),
    holderThumbprint: hash('sha256', `holder-${index % HOLDERS}`, 'base64url'),
    issuedAtSeconds: nowSeconds,
    expiresAtSeconds: nowSeconds + 300,
    skewSeconds: 5,
    nowSeconds,
  };
}

async function usedMemory(server: TestRedisServer): Promise<number> {
  return Number(/used_memory:(\d+)/.exec(await server.command('INFO', 'memory'))?.[1]);
}
