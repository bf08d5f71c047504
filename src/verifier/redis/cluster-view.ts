/** What one node of a Cluster knows of it. */
import { parseClusterSlots, type ShardMap } from './cluster-slots.ts';
import type { RedisAddress } from './endpoint.ts';
import { parseCount, parseInfo } from './info.ts';

export interface ClusterView {
  /** Rises with every failover and with every slot that moves; a node that was cut off still tells an old one. */
  readonly currentEpoch: number;
  /** Whether the node finds that the Cluster works; one that was cut off does not. */
  readonly isOk: boolean;
  readonly shards: ShardMap;
}

export type AskCluster = (command: 'CLUSTER', word: 'INFO' | 'SLOTS') => Promise<unknown>;

/** Undefined when the answers are not those of a Cluster. Rejects as `ask` does. */
export async function askClusterView(ask: AskCluster, asked: RedisAddress): Promise<ClusterView | undefined> {
  const [info, slots] = await Promise.all([ask('CLUSTER', 'INFO'), ask('CLUSTER', 'SLOTS')]);
  const fields = parseInfo(info);
  const currentEpoch = parseCount(fields.get('cluster_current_epoch'));
  const shards = parseClusterSlots(slots, asked);
  if (currentEpoch === undefined || shards === undefined) return undefined;
  return { currentEpoch, isOk: fields.get('cluster_state') === 'ok', shards };
}

/** The one to believe: of those that work, whoever knows the latest epoch. The first of equals. */
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
