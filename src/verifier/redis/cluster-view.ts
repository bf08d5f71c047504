/** One node's view of the Cluster: epoch, state and shards. */
import { parseClusterSlots, type ShardMap } from './cluster-slots.ts';
import type { RedisAddress } from './endpoint.ts';
import { parseCount, parseInfo } from './info.ts';

export interface ClusterView {
  /** Rises with every failover and with every slot that moves; a partitioned node still reports an old one. */
  readonly currentEpoch: number;
  /** Whether the node reports `cluster_state:ok`; a partitioned node does not. */
  readonly isOk: boolean;
  readonly shards: ShardMap;
}

export type AskCluster = (command: 'CLUSTER', word: 'INFO' | 'SLOTS') => Promise<unknown>;

/** Returns undefined when the replies are not those of a Cluster. Rejects when `ask` does. */
export async function askClusterView(ask: AskCluster, asked: RedisAddress): Promise<ClusterView | undefined> {
  const [info, slots] = await Promise.all([ask('CLUSTER', 'INFO'), ask('CLUSTER', 'SLOTS')]);
  const fields = parseInfo(info);
  const currentEpoch = parseCount(fields.get('cluster_current_epoch'));
  const shards = parseClusterSlots(slots, asked);
  if (currentEpoch === undefined || shards === undefined) return undefined;
  return { currentEpoch, isOk: fields.get('cluster_state') === 'ok', shards };
}

/** Picks the view to use: among those with state ok, the one with the latest epoch. On a tie, the first. */
export function bestView(views: readonly (ClusterView | undefined)[]): ClusterView | undefined {
  let best: ClusterView | undefined;
  for (const view of views) {
    if (view !== undefined && (best === undefined || isBetter(view, best))) best = view;
  }
  return best;
}

function isBetter(view: ClusterView, than: ClusterView): boolean {
  if (view.isOk !== than.isOk) return view.isOk;
  return view.currentEpoch > than.currentEpoch;
}
