/**
 * Tests two verifiers on Redis under Sentinels while the primary changes under load: on command, by kill -9, with deliberately
 * lost writes, in a split brain, after a stop. No proof is accepted twice, and service resumes by itself within the fence.
 * `PROOFGATE_TEST_FAILOVERS` sets the number of failovers (`make soak`).
 */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { TestRedisSentinel } from '../../support/harness/redis-sentinel.ts';
import { machineSlowness } from '../../support/wait.ts';
import { ReplayCampaign } from './campaign.ts';
import { SKEW_SECONDS } from './proof-source.ts';
import { ReplayStage } from './replay-fixture.ts';
import { type Failover, SENTINEL_FAILOVERS } from './sentinel-failovers.ts';
import { naiveTarget } from './targets.ts';

const FAILOVERS = Number(process.env.PROOFGATE_TEST_FAILOVERS ?? 3);
const MAX_LAG_SECONDS = 2;
/** docs/operate/replay.md: F is the larger of `min-replicas-max-lag` and 10 s, + 2 s. */
const FENCE_SECONDS = Math.max(MAX_LAG_SECONDS, 10) + 2 + 2 * SKEW_SECONDS + 1;
/** Time to find the new primary, with a margin for a busy machine. */
const ALLOWANCE_SECONDS = 12;

let stage: ReplayStage;
let redis: TestRedisSentinel;
let campaign: ReplayCampaign;
beforeAll(async () => {
  stage = await ReplayStage.set();
  redis = await TestRedisSentinel.start({ minReplicasMaxLagSeconds: MAX_LAG_SECONDS });
  stage.endsWith(() => redis.stop());
  // Each has a Sentinel on its own side of a split.
  await stage.startVerifier({ name: 'north', replay: redis.urlOf([0]) });
  await stage.startVerifier({ name: 'south', replay: redis.urlOf([1, 2]) });
  campaign = stage.campaign();
});
afterAll(() => stage?.strike());

const rounds = Array.from({ length: FAILOVERS }, (_, round) => {
  const failover = SENTINEL_FAILOVERS[round % SENTINEL_FAILOVERS.length];
  return [round + 1, failover?.name ?? '', failover] as const;
});

describe.each(rounds)('failover %i, %s', (_round, name, failover) => {
  it('accepts nothing twice and resumes by itself', async () => {
    if (failover === undefined) throw new Error('no such failover');
    await campaign.underLoad(async () => {
      let struck = Number.NaN;
      const { seconds, fenced } = await campaign.survive(name, async () => {
        await strike(failover);
        struck = await redis.promotions();
      });
      // A machine that does other things for half a second makes Sentinels promote once more, with a fence of its own.
      const fences = 1 + (await redis.promotions()) - struck;
      expect(campaign.ledger.doubles).toEqual([]);
      expect(campaign.ledger.unknown).toEqual([]);
      expect(seconds).toBeLessThan(fences * (FENCE_SECONDS + ALLOWANCE_SECONDS * machineSlowness()));
      expect(fenced).toBeGreaterThan(0);
    });
  });
});

it('accepted all along', async () => {
  await campaign.presentEverything();
  const { ledger, recoveries } = campaign;
  process.stdout.write(`Sentinel: ${JSON.stringify({ accepts: ledger.acceptCount, recoveries })}\n`);
  process.stdout.write(`Sentinel: ${JSON.stringify(Object.fromEntries(ledger.outcomes))}\n`);
  expect(ledger.doubles).toEqual([]);
  expect(recoveries).toHaveLength(FAILOVERS);
});

it('a store without a fence accepts twice when writes are lost: the campaign finds it', async () => {
  const lossy = SENTINEL_FAILOVERS.find(({ name }) => name.includes('lost'));
  if (lossy === undefined) throw new Error('no failover loses writes');
  const targets = ['north', 'south'].map((target) =>
    naiveTarget(target, async () => (await redis.primary()).server),
  );
  const naive = new ReplayCampaign({ source: stage.source, targets });
  await naive.underLoad(async () => {
    await naive.survive(lossy.name, () =>
      lossy.strike({ redis, campaign: naive, verifiers: stage.verifiers }),
    );
  });
  expect(naive.ledger.doubles.length).toBeGreaterThan(0);
});

async function strike(failover: Failover): Promise<void> {
  await failover.strike({ redis, campaign, verifiers: stage.verifiers });
}
