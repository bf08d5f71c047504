/** Changes to the part of a Cluster that holds the caller's replay records. Each ends with a healthy Cluster. */

import type { TestRedisCluster } from '../../support/harness/redis-cluster.ts';
import type { ReplayCampaign } from './campaign.ts';
import { inheritedBy, writtenBy } from './replication-offsets.ts';

interface ClusterStage {
  readonly redis: TestRedisCluster;
  /** Under load. */
  readonly campaign: ReplayCampaign;
}

export interface ClusterFault {
  readonly name: string;
  /** Whether records are lost for certain. */
  readonly isLoss: boolean;
  readonly strike: (stage: ClusterStage) => Promise<void>;
}

export const CLUSTER_FAULTS: readonly ClusterFault[] = [
  { name: 'the slot moves with its keys', isLoss: false, strike: moveSlot },
  { name: 'the slot moves without its keys', isLoss: true, strike: moveSlotWithoutKeys },
  { name: 'the slot moves halfway and stays', isLoss: false, strike: giveUpMove },
  { name: 'the primary is replaced on command', isLoss: false, strike: failOver },
  { name: 'the primary is replaced, writes lost', isLoss: true, strike: failOverWithoutWrites },
  { name: 'the primary is killed with -9', isLoss: false, strike: killPrimary },
  { name: 'the primary is cut off from all but its callers', isLoss: true, strike: cutOff },
];

const callerTags = new WeakMap<TestRedisCluster, string>();

/** The hash tag under which the verifiers keep what they know of the one caller, who was there within the last minute. */
export async function callerTag(redis: TestRedisCluster): Promise<string> {
  const known = callerTags.get(redis);
  if (known !== undefined) return known;
  for (const { server } of await redis.primaries()) {
    const keys = await server.ask('KEYS', 'proofgate:*:quota:*');
    const tag = Array.isArray(keys) ? /\{([^}]+)\}/.exec(String(keys[0]))?.[1] : undefined;
    if (tag === undefined) continue;
    callerTags.set(redis, tag);
    return tag;
  }
  throw new Error('no verifier keeps anything of a caller');
}

async function callerSlot(redis: TestRedisCluster): Promise<number> {
  return redis.slotOf(`{${await callerTag(redis)}}`);
}

async function ownerAndOther(redis: TestRedisCluster) {
  const slot = await callerSlot(redis);
  const owner = await redis.ownerOf(slot);
  const other = (await redis.primaries()).find((node) => node !== owner);
  if (other === undefined) throw new Error('there is one primary only');
  return { slot, owner, other };
}

async function moveSlot({ redis, campaign }: ClusterStage): Promise<void> {
  const { slot, other } = await ownerAndOther(redis);
  await redis.beginMove(slot, other);
  await campaign.presentAgain();
  await redis.moveKeys(slot, other, 1);
  await campaign.presentAgain();
  await redis.moveKeys(slot, other);
  await redis.finishMove(slot, other);
  await redis.settled();
}

async function moveSlotWithoutKeys({ redis }: ClusterStage): Promise<void> {
  const { slot, other } = await ownerAndOther(redis);
  await redis.moveSlotWithoutKeys(slot, other);
  await redis.settled();
}

/** Abandons the move of a slot: keys that have already moved are on a node that no client asks. */
async function giveUpMove({ redis, campaign }: ClusterStage): Promise<void> {
  const { slot, owner, other } = await ownerAndOther(redis);
  await redis.beginMove(slot, other);
  await redis.moveKeys(slot, other, 1);
  await campaign.presentAgain();
  for (const { server } of [owner, other]) await server.ask('CLUSTER', 'SETSLOT', `${slot}`, 'STABLE');
  const left = await other.server.ask('CLUSTER', 'GETKEYSINSLOT', `${slot}`, '10');
  if (!Array.isArray(left) || left.length === 0) throw new Error('no key was left behind');
}

async function failOver({ redis }: ClusterStage): Promise<void> {
  const { owner } = await ownerAndOther(redis);
  await redis.failover(await redis.replicaOf(owner));
  await redis.settled();
}

/** The replica misses the primary's further writes, and is promoted by vote when the primary is dead. */
async function failOverWithoutWrites({ redis, campaign }: ClusterStage): Promise<void> {
  const { owner } = await ownerAndOther(redis);
  const replica = await redis.replicaOf(owner);
  await campaign.acceptsBehindCut(
    async () => redis.holdReplication(owner, replica),
    () => mend(redis),
  );
  const written = await writtenBy(owner);
  await owner.server.kill();
  await redis.promoted(replica);
  if ((await inheritedBy(replica)) >= written) throw new Error('no write was lost');
  redis.heal();
  await owner.server.startAgain();
  await redis.settled();
}

async function killPrimary({ redis }: ClusterStage): Promise<void> {
  const { owner } = await ownerAndOther(redis);
  const replica = await redis.replicaOf(owner);
  await owner.server.kill();
  await redis.promoted(replica);
  await owner.server.startAgain();
  await redis.settled();
}

async function mend(redis: ClusterStage['redis']): Promise<void> {
  redis.heal();
  await redis.settled();
}

/** The primary accepts as long as it may, while the others promote its replica. */
async function cutOff({ redis, campaign }: ClusterStage): Promise<void> {
  try {
    const replica = await campaign.acceptsBehindCut(
      async () => {
        const { owner } = await ownerAndOther(redis);
        const itsReplica = await redis.replicaOf(owner);
        redis.cutOff(owner);
        return itsReplica;
      },
      () => mend(redis),
    );
    await redis.promoted(replica);
    await campaign.presentAgain();
  } finally {
    redis.heal();
  }
  await redis.settled();
}
