/**
 * Pauses a primary of a Cluster together with the verifier beside it, while its replica is promoted and the other verifier
 * continues: after the pause, no proof is accepted twice. `PROOFGATE_TEST_FAULTS` sets the repetitions of each kind of pause;
 * with 1, the default, only the worst kind runs (`make soak`).
 */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { TestRedisCluster } from '../../support/harness/redis-cluster.ts';
import { AcceptLedger } from './accept-ledger.ts';
import { ReplayCampaign } from './campaign.ts';
import { callerTag } from './cluster-changes.ts';
import { PAUSES, type PauseStage, standStill } from './paused-primary.ts';
import { ReplayStage } from './replay-fixture.ts';

const ROUNDS = Number(process.env.PROOFGATE_TEST_FAULTS ?? 1);
const MAX_LAG_SECONDS = 2;
const NODE_TIMEOUT_MS = 2_000;
/** The outcome of a verifier that got the call while it was paused. */
const GIVEN_UP = 'rpc CANCELLED';

let stage: ReplayStage;
let redis: TestRedisCluster;
/** One a pause: each begins with a fence that is made older than it is, which no longer guards what was lost in the pause before. */
const campaigns: ReplayCampaign[] = [];
const naive = new AcceptLedger();
beforeAll(async () => {
  stage = await ReplayStage.set();
  redis = await TestRedisCluster.start({
    minReplicasMaxLagSeconds: MAX_LAG_SECONDS,
    nodeTimeoutMs: NODE_TIMEOUT_MS,
  });
  stage.endsWith(() => redis.stop());
  await stage.startTwo(redis.url);
  await newCampaign().untilServing();
  // A promoted replica needs a replica itself.
  await redis.addReplica(await redis.ownerOf(await redis.slotOf(`{${await callerTag(redis)}}`)));
});
afterAll(() => stage?.strike());

const rounds = ROUNDS > 1 ? Array.from({ length: ROUNDS }, () => PAUSES).flat() : PAUSES.slice(0, 1);

describe.each(rounds)('a primary and its verifier stand still $name', (kind) => {
  it('accepts nothing twice and resumes by itself', async () => {
    const campaign = newCampaign();
    await campaign.underLoad(() => campaign.someAccepts());
    await standStill(pauseStage(campaign), kind);
    await campaign.untilServing();
    await campaign.presentAgain();
    expect(campaign.ledger.doubles).toEqual([]);
    expect(campaign.ledger.unknown).toEqual([]);
  });
});

it('a store that goes by the replicas that Redis counts accepts twice: the campaign finds it', async () => {
  await campaigns.at(-1)?.presentEverything();
  const found = campaigns.map(({ ledger }) => [ledger.acceptCount, Object.fromEntries(ledger.outcomes)]);
  process.stdout.write(`paused primary: ${JSON.stringify({ found, naive: naive.doubles.length })}\n`);
  expect(campaigns.flatMap(({ ledger }) => ledger.doubles)).toEqual([]);
  expect(naive.doubles.length).toBeGreaterThan(0);
});

function newCampaign(): ReplayCampaign {
  const targets = stage.verifiers.map(({ target }) => target);
  const campaign = new ReplayCampaign({
    source: stage.source,
    targets,
    ledger: new AcceptLedger([GIVEN_UP]),
  });
  campaigns.push(campaign);
  return campaign;
}

function pauseStage(campaign: ReplayCampaign): PauseStage {
  const [paused, running] = stage.verifiers;
  if (paused === undefined || running === undefined) throw new Error('there are no two verifiers');
  return { redis, campaign, paused, running, naive };
}
