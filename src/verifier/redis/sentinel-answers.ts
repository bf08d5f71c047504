/** What Sentinels say of a primary and its replicas, read strictly. */
import type { RedisAddress } from './endpoint.ts';
import { parseCount, parsePairs } from './info.ts';

export interface SentinelView {
  readonly primary: RedisAddress;
  /** Rises with every failover; a Sentinel that was cut off still tells an old one. */
  readonly configEpoch: number;
  /**
   * How many replicas there are, reachable at this moment or not, when any of them may become the primary; 0 when
   * none may. One that may not be promoted counts as well: it could stay with a primary that was replaced.
   */
  readonly replicas: number;
}

/** From `SENTINEL MASTER` and `SENTINEL REPLICAS`; undefined when they are no such answers. */
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

/** Priority 0 means never. One whose priority nobody knows yet may be promoted. */
function isPromotable(replica: unknown): boolean {
  return parsePairs(replica).get('slave-priority') !== '0';
}

/** The view after the latest failover; undefined when there is none. */
export function latestView(views: readonly (SentinelView | undefined)[]): SentinelView | undefined {
  let latest: SentinelView | undefined;
  for (const view of views) {
    if (view === undefined) continue;
    if (latest === undefined || view.configEpoch > latest.configEpoch) latest = view;
    // As many as any of them knows: one that has just started knows none.
    else if (view.configEpoch === latest.configEpoch) latest = withMoreReplicas(latest, view);
  }
  return latest;
}

function withMoreReplicas(view: SentinelView, other: SentinelView): SentinelView {
  return other.replicas > view.replicas ? { ...view, replicas: other.replicas } : view;
}
