/**
 * Tests two verifiers on one Redis that loses its data, restarts, stalls and closes connections, under load: no proof is
 * accepted twice, and service resumes by itself within the fence. `PROOFGATE_TEST_FAULTS` sets the repetitions of each fault
 * (`make soak`).
 */
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { TestRedisServer } from '../../support/harness/redis-server.ts';
import { machineSlowness } from '../../support/wait.ts';
import { ReplayCampaign } from './campaign.ts';
import { SKEW_SECONDS } from './proof-source.ts';
import { ReplayStage } from './replay-fixture.ts';
import { naiveTarget } from './targets.ts';

const ROUNDS = Number(process.env.PROOFGATE_TEST_FAULTS ?? 1);
/** docs/design/protocol.md "Replay": proofs issued up to the epoch's moment + 2 × skew are refused; clocks go in whole seconds. */
const FENCE_SECONDS = 2 * SKEW_SECONDS + 1;
/** To notice, to connect again, and for a machine that does other things too. */
const ALLOWANCE_SECONDS = 10;
const FAULT_TIMEOUT_MS = 300_000 + 40_000 * ROUNDS;

interface Fault {
  readonly name: string;
  readonly strike: (redis: TestRedisServer) => Promise<void>;
  /** Whether records are lost, so that there has to be a fence. */
  readonly isLoss: boolean;
}

const FAULTS: readonly Fault[] = [
  { name: 'killed with -9 and restarted empty', strike: killAndRestart, isLoss: true },
  { name: 'killed with -9, restarted empty, and once more', strike: killTwice, isLoss: true },
  { name: 'flushed', strike: (redis) => ask(redis, 'FLUSHALL'), isLoss: true },
  { name: 'its epoch key deleted', strike: deleteEpoch, isLoss: true },
  { name: 'its scripts forgotten', strike: (redis) => ask(redis, 'SCRIPT', 'FLUSH'), isLoss: false },
  { name: 'its clients cut off', strike: cutClients, isLoss: false },
  { name: 'paused', strike: (redis) => ask(redis, 'CLIENT', 'PAUSE', '1000', 'ALL'), isLoss: false },
  { name: 'stopped and continued', strike: stall, isLoss: false },
];

let stage: ReplayStage;
let redis: TestRedisServer;
let campaign: ReplayCampaign;
beforeAll(async () => {
  stage = await ReplayStage.set();
  redis = await TestRedisServer.start('--maxmemory-policy', 'noeviction');
  stage.endsWith(() => redis.stop());
  await stage.startTwo(redis.url);
  campaign = stage.campaign();
});
afterAll(() => stage?.strike());

describe.each(FAULTS)('Redis is $name', ({ name, strike, isLoss }) => {
  it(
    'accepts nothing twice and resumes by itself',
    async () => {
      await campaign.underLoad(async () => {
        for (let round = 0; round < ROUNDS; round += 1) {
          const { seconds, fenced } = await campaign.survive(name, () => strike(redis));
          expect(campaign.ledger.doubles).toEqual([]);
          expect(campaign.ledger.unknown).toEqual([]);
          expect(seconds).toBeLessThan((isLoss ? FENCE_SECONDS : 0) + ALLOWANCE_SECONDS * machineSlowness());
          // A loss raises a fence, and nothing else does.
          expect(fenced > 0).toBe(isLoss);
        }
      });
    },
    FAULT_TIMEOUT_MS,
  );
});

it('accepted all along', async () => {
  await campaign.presentEverything();
  const { ledger, recoveries } = campaign;
  process.stdout.write(`single Redis: ${JSON.stringify({ accepts: ledger.acceptCount, recoveries })}\n`);
  process.stdout.write(`single Redis: ${JSON.stringify(Object.fromEntries(ledger.outcomes))}\n`);
  expect(ledger.doubles).toEqual([]);
  expect(recoveries).toHaveLength(FAULTS.length * ROUNDS);
  expect(ledger.count('jti_replay 403')).toBeGreaterThan(ledger.acceptCount);
});

describe('a store without a fence', () => {
  it.each(FAULTS.filter(({ isLoss, name }) => isLoss && !name.includes('epoch')))(
    'accepts twice when Redis is $name: the campaign finds it',
    async ({ name, strike }) => {
      const targets = ['north', 'south'].map((target) => naiveTarget(target, () => redis));
      const naive = new ReplayCampaign({ source: stage.source, targets });
      await naive.underLoad(async () => void (await naive.survive(name, () => strike(redis))));
      expect(naive.ledger.doubles.length).toBeGreaterThan(0);
    },
    FAULT_TIMEOUT_MS,
  );
});

async function ask(server: TestRedisServer, ...words: readonly string[]): Promise<void> {
  await server.ask(...words);
}

async function killAndRestart(server: TestRedisServer): Promise<void> {
  await server.kill();
  await server.startAgain();
}

/** The second time while verifiers are still behind the first fence. */
async function killTwice(server: TestRedisServer): Promise<void> {
  await killAndRestart(server);
  await pause(FENCE_SECONDS * 500);
  await killAndRestart(server);
}

async function deleteEpoch(server: TestRedisServer): Promise<void> {
  const keys = await server.ask('KEYS', 'proofgate:*epoch*');
  if (!Array.isArray(keys) || keys.length === 0) throw new Error('there is no epoch key');
  await server.ask('DEL', ...keys.map(String));
}

/** Again and again, as they come back. */
async function cutClients(server: TestRedisServer): Promise<void> {
  for (let time = 0; time < 20; time += 1) {
    await server.ask('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    await pause(25);
  }
}

async function stall(server: TestRedisServer): Promise<void> {
  server.freeze();
  await pause(1_000);
  server.thaw();
}
