/**
 * The instances of targets: verifiers that share a target's token become visible one by one, with the replay store that each
 * uses. A proof counts once in each store, so a site whose verifiers use two accepts it twice.
 * Source: docs/operate/replay.md "Several regions".
 */
import { MAX_WAIT_SECONDS } from '../../bundle/format/bundle-limits.ts';
import { type InstanceReport, MEMORY_STORE } from '../../bundle/format/instance-report.ts';
import type { TargetInstanceView } from '../contract/targets-contract.ts';
import type { RowOf } from '../store/repositories/records.ts';
import type { Transaction } from '../store/transaction.ts';

type Instance = RowOf<'targetInstance'>;

/** A token may be stolen: its holder cannot fill the table, nor displace instances that poll, but can keep new ones out. */
export const MAX_INSTANCES = 256;
/** In this time each instance sends a request, and Control writes that it did. */
const LIVE_MS = MAX_WAIT_SECONDS * 2 * 1000 + 10_000;
/** How long an instance that ended is shown. */
const KEPT_MS = 600_000;

/** An instance in a request. */
export interface SeenInstance extends InstanceReport {
  readonly targetId: string;
  readonly siteId: string;
  /** That it has loaded; undefined before the first. */
  readonly revision: number | undefined;
  /** How many observations of the bundle it enforces nevertheless. */
  readonly enforcedObservations: number;
}

/**
 * Writes which instances sent a request since the last write.
 * @param seen by target
 * @returns the IDs of those that are kept, by target
 */
export async function noteInstances(
  tx: Transaction,
  seen: ReadonlyMap<string, readonly SeenInstance[]>,
  nowMs: number,
): Promise<ReadonlyMap<string, ReadonlySet<string>>> {
  const ids = new Map<string, ReadonlySet<string>>();
  if (seen.size === 0) return ids;
  const known = await tx.targetInstances.ofAttached([...seen.keys()]);
  const rows: Instance[] = [];
  for (const [targetId, before] of known) {
    const { ended, kept } = nextInstances(before, seen.get(targetId) ?? [], nowMs);
    for (const instance of ended) await tx.targetInstances.remove(instance);
    rows.push(...kept.filter(({ lastSeenAtMs }) => lastSeenAtMs === nowMs));
    ids.set(targetId, new Set(kept.map(({ instanceId }) => instanceId)));
  }
  // One statement for all targets, because their rows are locked meanwhile.
  await tx.targetInstances.put(rows);
  return ids;
}

/** At most {@link MAX_INSTANCES}: the silent ones give way, the longest silent first, and live ones never to a new one. */
export function nextInstances(
  known: readonly Instance[],
  seen: readonly SeenInstance[],
  nowMs: number,
): { readonly kept: readonly Instance[]; readonly ended: readonly Instance[] } {
  const instances = new Map(known.map((instance) => [instance.instanceId, instance]));
  for (const { instanceId, replayStore = null, revision = null, ...others } of seen) {
    const firstSeenAtMs = instances.get(instanceId)?.firstSeenAtMs ?? nowMs;
    instances.set(instanceId, {
      ...others,
      ...{ instanceId, replayStore, revision, firstSeenAtMs, lastSeenAtMs: nowMs },
    });
  }
  const recent = [...instances.values()].filter(({ lastSeenAtMs }) => nowMs - lastSeenAtMs < KEPT_MS);
  const ranked = recent.toSorted(
    (a, b) => silenceMs(a, nowMs) - silenceMs(b, nowMs) || a.firstSeenAtMs - b.firstSeenAtMs,
  );
  const kept = ranked.slice(0, MAX_INSTANCES);
  const keptIds = new Set(kept.map(({ instanceId }) => instanceId));
  return { kept, ended: known.filter(({ instanceId }) => !keptIds.has(instanceId)) };
}

/** 0 for a live instance. */
function silenceMs(instance: Instance, nowMs: number): number {
  return isLive(instance, nowMs) ? 0 : nowMs - instance.lastSeenAtMs;
}

function isLive({ lastSeenAtMs }: Instance, nowMs: number): boolean {
  return nowMs - lastSeenAtMs <= LIVE_MS;
}

/** The instances of a site, without those that ended long ago. */
export function recentInstances(
  tx: Transaction,
  siteId: string,
  nowMs: number,
): Promise<readonly Instance[]> {
  return tx.targetInstances.ofSite(siteId, nowMs - KEPT_MS);
}

/** The number of replay stores that live instances use; those that do not know theirs are not counted. */
export function replayStores(instances: readonly Instance[], nowMs: number): number {
  const stores = instances
    .filter((instance) => instance.replayStore !== null && isLive(instance, nowMs))
    .map(({ instanceId, replayStore }) =>
      replayStore === MEMORY_STORE ? `memory ${instanceId}` : replayStore,
    );
  return new Set(stores).size;
}

export function instanceView(instance: Instance, nowMs: number): TargetInstanceView {
  const { enforcedObservations, firstSeenAtMs, instanceId, lastSeenAtMs, replayStore, revision, version } =
    instance;
  return {
    instance_id: instanceId,
    version,
    ...(replayStore === null ? {} : { replay_store: replayStore }),
    ...(revision === null ? {} : { revision }),
    enforced_observations: enforcedObservations,
    first_seen_at: new Date(firstSeenAtMs).toISOString(),
    last_seen_at: new Date(lastSeenAtMs).toISOString(),
    silent: !isLive(instance, nowMs),
  };
}
