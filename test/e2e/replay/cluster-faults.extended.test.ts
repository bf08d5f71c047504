/**
 * Tests two verifiers on a Redis Cluster under load while slots move, with their keys and without, and primaries change: no
 * proof is accepted twice, and service resumes by itself within the fence. `PROOFGATE_TEST_FAULTS` sets the repetitions of each
 * fault; with 1, the default, some faults are left out (`make soak`).
 */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { TestRedisCluster } from '../../support/harness/redis-cluster.ts';
import { machineSlowness } from '../../support/wait.ts';
import { ReplayCampaign } from './campaign.ts';
import { CLUSTER_FAULTS, type ClusterFault, callerTag } from './cluster-changes.ts';
import { SKEW_SECONDS } from './proof-source.ts';
import { ReplayStage } from './replay-fixture.ts';
import { naiveTarget } from './targets.ts';

const ROUNDS = Number(process.env.PROOFGATE_TEST_FAULTS ?? 1);
/** By default, only the faults that lose records. */
const FAULTS = ROUNDS > 1 ? CLUSTER_FAULTS : CLUSTER_FAULTS.filter(({ isLoss }) => isLoss);
const MAX_LAG_SECONDS = 2;
const NODE_TIMEOUT_MS = 2_000;
/** docs/operate/replay.md: F is the largest of `min-replicas-max-lag`, `cluster-node-timeout` and 10 s, + 2 s. */
const FENCE_SECONDS = Math.max(MAX_LAG_SECONDS, NODE_TIMEOUT_MS / 1000, 10) + 2 + 2 * SKEW_SECONDS + 1;
/** Time to find the new owner, with a margin for a busy machine. */
const ALLOWANCE_SECONDS = 15;

let stage: ReplayStage;
let redis: TestRedisCluster;
let campaign: ReplayCampaign;
beforeAll(async () => {
  stage = await ReplayStage.set();
  redis = await TestRedisCluster.start({
    minReplicasMaxLagSeconds: MAX_LAG_SECONDS,
    nodeTimeoutMs: NODE_TIMEOUT_MS,
  });
  stage.endsWith(() => redis.stop());
  await stage.startTwo(redis.url);
  campaign = stage.campaign();
});
afterAll(() => stage?.strike());

const rounds = Array.from({ length: ROUNDS }, () => FAULTS).flat();

describe.each(rounds)('$name', (fault) => {
  it('accepts nothing twice and resumes by itself', async () => {
    await campaign.underLoad(async () => {
      const { seconds } = await campaign.survive(fault.name, () => strike(fault, campaign));
      expect(campaign.ledger.doubles).toEqual([]);
      expect(campaign.ledger.unknown).toEqual([]);
      expect(seconds).toBeLessThan(FENCE_SECONDS + ALLOWANCE_SECONDS * machineSlowness());
    });
  });
});

it('accepted all along', async () => {
  await campaign.presentEverything();
  const { ledger, recoveries } = campaign;
  process.stdout.write(`Cluster: ${JSON.stringify({ accepts: ledger.acceptCount, recoveries })}\n`);
  process.stdout.write(`Cluster: ${JSON.stringify(Object.fromEntries(ledger.outcomes))}\n`);
  expect(ledger.doubles).toEqual([]);
  expect(recoveries).toHaveLength(rounds.length);
});

it('a store without a fence accepts twice when a slot moves without its keys: the campaign finds it', async () => {
  const fault = CLUSTER_FAULTS.find(({ name }) => name.includes('without its keys'));
  if (fault === undefined) throw new Error('no slot moves without its keys');
  // Keys of the slot that moves.
  const tag = `{${await callerTag(redis)}}`;
  const owner = async () => (await redis.ownerOf(await redis.slotOf(tag))).server;
  const naive = new ReplayCampaign({
    source: stage.source,
    targets: ['north', 'south'].map((name) => naiveTarget(name, owner, tag)),
  });
  await naive.underLoad(async () => void (await naive.survive(fault.name, () => strike(fault, naive))));
  expect(naive.ledger.doubles.length).toBeGreaterThan(0);
});

function strike(fault: ClusterFault, under: ReplayCampaign): Promise<void> {
  return fault.strike({ redis, campaign: under });
}
