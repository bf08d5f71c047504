/** Parses what Sentinels report about a primary and its replicas. */
import type { RedisAddress } from './endpoint.ts';
import { parseCount, parsePairs } from './info.ts';

export interface SentinelView {
  readonly primary: RedisAddress;
  /** Rises with every failover; a partitioned Sentinel still reports an old one. */
  readonly configEpoch: number;
  /**
   * Number of replicas, reachable or not, if any of them may be promoted; 0 if none may. One that may not be promoted
   * counts too, because it could stay with a replaced primary.
   */
  readonly replicas: number;
}

/** Parses the replies to `SENTINEL MASTER` and `SENTINEL REPLICAS`; undefined for any other replies. */
export function parseSentinelView(primary: unknown, replicas: unknown): SentinelView | undefined {
  const fields = parsePairs(primary);
  const host = fields.get('ip');
  const port = parseCount(fields.get('port'));
  const configEpoch = parseCount(fields.get('config-epoch'));
  if (host === undefined || host === '' || configEpoch === undefined) return undefined;
  if (port === undefined || port < 1 || port > 65_535 || !Array.isArray(replicas)) return undefined;
  return {
    primary: { host, port },
    configEpoch,
    replicas: replicas.some(isPromotable) ? replicas.length : 0,
  };
}

/** Priority 0 means never. A replica whose priority is still unknown may be promoted. */
function isPromotable(replica: unknown): boolean {
  return parsePairs(replica).get('slave-priority') !== '0';
}

/** The view after the latest failover; undefined when there is none. */
export function latestView(views: readonly (SentinelView | undefined)[]): SentinelView | undefined {
  let latest: SentinelView | undefined;
  for (const view of views) {
    if (view === undefined) continue;
    if (latest === undefined || view.configEpoch > latest.configEpoch) latest = view;
    // Uses the largest number of replicas, because a Sentinel that has just started knows none.
    else if (view.configEpoch === latest.configEpoch) latest = withMoreReplicas(latest, view);
  }
  return latest;
}

function withMoreReplicas(view: SentinelView, other: SentinelView): SentinelView {
  return other.replicas > view.replicas ? { ...view, replicas: other.replicas } : view;
}
