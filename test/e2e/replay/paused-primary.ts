/**
 * Pauses a machine that has a primary of the Cluster and one of the verifiers, while all others continue: they promote a
 * replica and accept proofs. After the pause, unread data may make the old primary believe that its replicas are still there.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { Redis } from 'ioredis';
import type { TestRedisCluster } from '../../support/harness/redis-cluster.ts';
import { type ClusterNode, roleOf } from '../../support/harness/redis-cluster.ts';
import { waitUntil } from '../../support/wait.ts';
import type { AcceptLedger } from './accept-ledger.ts';
import { type ReplayCampaign, ROUND_PACE_MS } from './campaign.ts';
import { callerTag } from './cluster-changes.ts';
import type { Proof } from './proof-source.ts';
import type { ReplayVerifier } from './verifier-process.ts';

export interface PauseStage {
  readonly redis: TestRedisCluster;
  readonly campaign: ReplayCampaign;
  /** The verifier on the paused machine. */
  readonly paused: ReplayVerifier;
  readonly running: ReplayVerifier;
  /** Results of the naive stores, which rely on Redis' own count of replicas, for the same proofs. */
  readonly naive: AcceptLedger;
}

export interface Pause {
  readonly name: string;
  /** Replicas acknowledge after the machine paused and before the network was cut: the primary reads that when it resumes. */
  readonly isAcknowledged: boolean;
  /** True: pause until the others accept. False: pause until one of them is promoted. */
  readonly isLong: boolean;
}

export const PAUSES: readonly Pause[] = [
  { name: 'until others accept, and finds old acknowledgements', isAcknowledged: true, isLong: true },
  { name: 'until others accept', isAcknowledged: false, isLong: true },
  { name: 'until another is promoted, and finds old acknowledgements', isAcknowledged: true, isLong: false },
];

/** Replicas acknowledge each second. */
const ACKNOWLEDGED_MS = 1_500;
/** Older than any fence that still matters: 300 s, and three skews. */
const FENCE_AGE_SECONDS = 900;
const ACCEPTED_BY_OTHERS = 20;
/**
 * How often in a second Redis does a part of what it does each second. With the usual it may count its replicas anew as the
 * first thing after its return, once in ten times; with the most it answers first.
 */
const USUAL_TICKS = 10;
const MOST_TICKS = 500;
/**
 * How long the old primary runs without clients after its return: longer than its lease, the largest lag and the node time-out.
 */
const ALONE_MS = 15_000;

/** Ends with a Cluster that is well. */
export async function standStill(stage: PauseStage, { isAcknowledged, isLong }: Pause): Promise<void> {
  const { redis, campaign, paused, running, naive } = stage;
  const tag = await callerTag(redis);
  const primary = await redis.ownerOf(await redis.slotOf(`{${tag}}`));
  const replicas = await replicasOf(redis, primary);
  await ageFence(primary, tag);
  await campaign.untilServing();
  const client = new Redis(primary.server.port, '127.0.0.1', { maxRetriesPerRequest: null });
  await client.config('SET', 'hz', MOST_TICKS);
  try {
    primary.server.freeze();
    process.kill(paused.pid, 'SIGSTOP');
    if (isAcknowledged) await pause(ACKNOWLEDGED_MS);
    redis.partition([primary], [paused.pid]);
    const promoted = await promotedOf(replicas);
    if (isLong) await acceptSome(campaign, running);
    // The primary finds these when it resumes, before it notices that it is isolated.
    const accepted = campaign.latest(ACCEPTED_BY_OTHERS);
    const presented = accepted.map((proof) => campaign.presentOne(proof, paused.target));
    const naivePresented = tellNaive({ naive, tag, promoted, client }, accepted);
    primary.server.thaw();
    process.kill(paused.pid, 'SIGCONT');
    await Promise.all([...presented, naivePresented, presentWhileAlone(campaign)]);
  } finally {
    primary.server.thaw();
    process.kill(paused.pid, 'SIGCONT');
    redis.heal();
    await client.config('SET', 'hz', USUAL_TICKS).finally(() => client.disconnect());
  }
  await redis.settled();
}

/** Whatever either of them accepts, both are given, all the time. */
async function presentWhileAlone(campaign: ReplayCampaign): Promise<void> {
  await campaign.underLoad(async () => {
    const untilMs = performance.now() + ALONE_MS;
    while (performance.now() < untilMs) {
      await campaign.presentAgain();
      await pause(ROUND_PACE_MS);
    }
  });
}

async function acceptSome(campaign: ReplayCampaign, running: ReplayVerifier): Promise<void> {
  for (let accepted = 0; accepted < ACCEPTED_BY_OTHERS; accepted += 1) {
    await campaign.untilServing([running.target]);
  }
}

/** The fence of the primary is long over, as it is in a site that runs for some time. */
async function ageFence({ server }: ClusterNode, tag: string): Promise<void> {
  const lua =
    "local moment, rest = string.match(redis.call('GET', KEYS[1]), '^(%d+)( .*)$') " +
    "return redis.call('SET', KEYS[1], string.format('%d%s', tonumber(moment) - ARGV[1], rest))";
  await server.ask('EVAL', lua, '1', `proofgate:{${tag}}:epoch`, `${FENCE_AGE_SECONDS}`);
}

async function replicasOf(redis: TestRedisCluster, primary: ClusterNode): Promise<readonly ClusterNode[]> {
  const nodes = String(await primary.server.ask('CLUSTER', 'NODES')).split('\n');
  const ids = nodes.map((line) => line.split(' ')).filter(([, , , followed]) => followed === primary.id);
  return redis.nodes.filter((node) => ids.some(([id]) => id === node.id));
}

async function promotedOf(replicas: readonly ClusterNode[]): Promise<ClusterNode> {
  let promoted: ClusterNode | undefined;
  await waitUntil(async () => {
    const roles = await Promise.all(replicas.map(roleOf));
    promoted = replicas.find((_, at) => roles[at] === 'master');
    return promoted !== undefined;
  });
  if (promoted === undefined) throw new Error('nothing was promoted');
  return promoted;
}

interface NaiveStores {
  readonly naive: AcceptLedger;
  readonly tag: string;
  readonly promoted: ClusterNode;
  /** Connected to the paused primary. */
  readonly client: Redis;
}

/**
 * Presents proofs as a store would that uses `SET NX`, to both primaries. The paused one reads the commands as soon as it
 * resumes.
 */
async function tellNaive({ naive, tag, promoted, client }: NaiveStores, proofs: readonly Proof[]) {
  const tell = async (target: string, jti: string, answer: Promise<unknown>) => {
    const outcome = await answer.then(
      (reply) => (reply === 'OK' ? 'allowed' : 'jti_replay 403'),
      () => 'replay_store_unavailable/store 503',
    );
    naive.record(jti, target, outcome);
  };
  await Promise.all(
    proofs.flatMap(({ jti }) => {
      const key = `naive:{${tag}}:${jti}`;
      return [
        tell('paused', jti, client.set(key, '1', 'EX', 310, 'NX')),
        tell('running', jti, promoted.server.ask('SET', key, '1', 'NX', 'EX', '310')),
      ];
    }),
  );
}
