/** Ways to replace a primary under Sentinels. Each ends with one primary and two replicas that follow it. */
import type { TestRedisSentinel } from '../../support/harness/redis-sentinel.ts';
import type { ReplayCampaign } from './campaign.ts';
import { inheritedBy, writtenBy } from './replication-offsets.ts';
import type { ReplayVerifier } from './verifier-process.ts';

interface FailoverStage {
  readonly redis: TestRedisSentinel;
  /** Under load. */
  readonly campaign: ReplayCampaign;
  /** North, whose Sentinel is the first, and south. */
  readonly verifiers: readonly ReplayVerifier[];
}

export interface Failover {
  readonly name: string;
  readonly strike: (stage: FailoverStage) => Promise<void>;
}

export const SENTINEL_FAILOVERS: readonly Failover[] = [
  { name: 'on command', strike: failOverOnCommand },
  { name: 'writes lost', strike: promoteWithoutWrites },
  { name: 'split brain', strike: splitBrain },
  { name: 'kill -9', strike: killPrimary },
  { name: 'stopped and continued', strike: stopAndContinue },
];

async function failOverOnCommand({ redis }: FailoverStage): Promise<void> {
  await redis.failover();
  await redis.settled();
}

async function killPrimary({ redis }: FailoverStage): Promise<void> {
  const primary = await redis.primary();
  await primary.server.kill();
  await redis.promoted(primary);
  await primary.server.startAgain();
  await redis.settled();
}

/** One replica misses the primary's further writes, and is promoted. */
async function promoteWithoutWrites({ redis, campaign }: FailoverStage): Promise<void> {
  const primary = await redis.primary();
  const [replica] = await redis.replicas();
  if (replica === undefined) throw new Error('there is no replica');
  await redis.candidate(replica);
  await campaign.someAccepts();
  await campaign.acceptsBehindCut(
    async () => redis.holdReplication(primary, replica),
    () => mend(redis),
  );
  const written = await writtenBy(primary);
  await primary.server.kill();
  await redis.promoted(primary);
  if ((await inheritedBy(replica)) >= written) throw new Error('no write was lost');
  redis.heal();
  await redis.candidates();
  await primary.server.startAgain();
  await redis.settled();
}

/**
 * North and the primary on one side, where proofs are accepted until the primary misses its replicas; on the other a replica
 * that is promoted, and south. Every replica has to be well where proofs are accepted, so south waits for the end of it.
 */
async function splitBrain({ redis, campaign, verifiers }: FailoverStage): Promise<void> {
  const { north, firstSentinel } = sides(redis, verifiers);
  try {
    const primary = await campaign.acceptsBehindCut(
      async () => {
        const cutOff = await redis.primary();
        redis.partition([cutOff, firstSentinel], [north.pid]);
        return cutOff;
      },
      () => mend(redis),
    );
    await redis.promoted(primary);
    await campaign.presentAgain();
    await campaign.untilRefusing(north.target);
    await campaign.presentAgain();
  } finally {
    redis.heal();
  }
  await redis.settled();
}

async function mend(redis: TestRedisSentinel): Promise<void> {
  redis.heal();
  await redis.settled();
}

async function stopAndContinue({ redis }: FailoverStage): Promise<void> {
  const primary = await redis.primary();
  primary.server.freeze();
  await redis.promoted(primary).finally(() => primary.server.thaw());
  await redis.settled();
}

export function sides(redis: TestRedisSentinel, [north, south]: readonly ReplayVerifier[]) {
  const [firstSentinel] = redis.sentinels;
  if (north === undefined || south === undefined || firstSentinel === undefined) {
    throw new Error('there are no two sides');
  }
  return { north, south, firstSentinel };
}
