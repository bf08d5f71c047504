/**
 * Tests a split brain in which both sides have replicas: one that can be promoted, and one on each side that never is. Both
 * sides stay separated for longer than any fence; no proof that one side accepts is accepted by the other.
 */
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { TestRedisSentinel } from '../../support/harness/redis-sentinel.ts';
import type { ReplayCampaign } from './campaign.ts';
import { ReplayStage } from './replay-fixture.ts';
import { sides } from './sentinel-failovers.ts';

/** F is 12 s, and twice the skew. */
const LONGER_THAN_A_FENCE_MS = 23_000;

let stage: ReplayStage;
let redis: TestRedisSentinel;
let campaign: ReplayCampaign;
beforeAll(async () => {
  stage = await ReplayStage.set();
  redis = await TestRedisSentinel.start({ replicaPriorities: [100, 0, 0], minReplicasToWrite: 1 });
  stage.endsWith(() => redis.stop());
  await stage.startVerifier({ name: 'north', replay: redis.urlOf([0]), awaited: 'livez' });
  await stage.startVerifier({ name: 'south', replay: redis.urlOf([1, 2]), awaited: 'livez' });
  campaign = stage.campaign();
});
afterAll(() => stage?.strike());

it('accepts nothing on both sides', async () => {
  const primary = await redis.primary();
  const [, , staysWithPrimary] = redis.nodes;
  const { north, firstSentinel } = sides(redis, stage.verifiers);
  if (staysWithPrimary === undefined) throw new Error('there is no such replica');
  const accepting = await campaign.underLoad(async () => {
    redis.partition([primary, staysWithPrimary, firstSentinel], [north.pid]);
    await redis.promoted(primary);
    return campaign.accepting(LONGER_THAN_A_FENCE_MS);
  });
  process.stdout.write(
    `Sentinel, split: ${JSON.stringify({ accepting, accepts: campaign.ledger.acceptCount })}\n`,
  );
  expect(campaign.ledger.doubles).toEqual([]);
  expect(accepting.length).toBeLessThan(2);
});
