/**
 * The instances of targets: verifiers that share a target's token become visible one by one, with the replay store that each
 * uses. A proof counts once in each store, so a site whose verifiers use two accepts it twice.
 * Source: docs/operate/replay.md "Several regions".
 */
import { MAX_WAIT_SECONDS } from '../../bundle/format/bundle-limits.ts';
import { type EnforcedObservations, enforcedText } from '../../bundle/format/enforced-observations.ts';
import { type InstanceReport, MEMORY_STORE } from '../../bundle/format/instance-report.ts';
import type { TargetInstanceView } from '../contract/targets-contract.ts';
import type { RowOf } from '../store/repositories/records.ts';
import type { Transaction } from '../store/transaction.ts';
import { enforcedMember } from './known-members.ts';

type Instance = RowOf<'targetInstance'>;

/** A token may be stolen: its holder cannot fill the table, nor displace instances that poll. */
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
  /** What it enforces although the bundle says observe. */
  readonly enforced: EnforcedObservations | undefined;
}

/** Writes which instances sent a request since the last write. */
export async function noteInstances(
  tx: Transaction,
  seen: readonly SeenInstance[],
  nowMs: number,
): Promise<void> {
  if (seen.length === 0) return;
  const known = await tx.targetInstances.ofAttached([...new Set(seen.map(({ targetId }) => targetId))]);
  for (const [targetId, before] of known) {
    const now = seen.filter((instance) => instance.targetId === targetId);
    const { ended, kept } = nextInstances(before, now, nowMs);
    for (const instance of ended) await tx.targetInstances.remove(instance);
    await tx.targetInstances.put(kept.filter(({ lastSeenAtMs }) => lastSeenAtMs === nowMs));
  }
}

/** At most {@link MAX_INSTANCES}: the silent ones give way, the longest silent first, and live ones never to a new one. */
export function nextInstances(
  known: readonly Instance[],
  seen: readonly SeenInstance[],
  nowMs: number,
): { readonly kept: readonly Instance[]; readonly ended: readonly Instance[] } {
  const instances = new Map(known.map((instance) => [instance.instanceId, instance]));
  for (const {
    enforced,
    instanceId,
    replayStore = null,
    revision = null,
    siteId,
    targetId,
    version,
  } of seen) {
    const firstSeenAtMs = instances.get(instanceId)?.firstSeenAtMs ?? nowMs;
    instances.set(instanceId, {
      ...{ targetId, instanceId, siteId, version, replayStore, revision },
      enforcedObservations: enforced === undefined ? null : enforcedText(enforced),
      ...{ firstSeenAtMs, lastSeenAtMs: nowMs },
    });
  }
  const ranked = recentInstances([...instances.values()], nowMs).toSorted(
    (a, b) => silenceMs(a, nowMs) - silenceMs(b, nowMs) || a.firstSeenAtMs - b.firstSeenAtMs,
  );
  const kept = ranked.slice(0, MAX_INSTANCES);
  return {
    kept,
    ended: known.filter(({ instanceId }) => !kept.some((one) => one.instanceId === instanceId)),
  };
}

/** Without those that ended long ago. */
export function recentInstances(instances: readonly Instance[], nowMs: number): readonly Instance[] {
  return instances.filter(({ lastSeenAtMs }) => nowMs - lastSeenAtMs < KEPT_MS);
}

/** 0 for a live instance. */
function silenceMs(instance: Instance, nowMs: number): number {
  return isLive(instance, nowMs) ? 0 : nowMs - instance.lastSeenAtMs;
}

function isLive({ lastSeenAtMs }: Instance, nowMs: number): boolean {
  return nowMs - lastSeenAtMs <= LIVE_MS;
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
  const { firstSeenAtMs, instanceId, lastSeenAtMs, replayStore, revision, version } = instance;
  return {
    instance_id: instanceId,
    version,
    ...(replayStore === null ? {} : { replay_store: replayStore }),
    ...(revision === null ? {} : { revision }),
    first_seen_at: new Date(firstSeenAtMs).toISOString(),
    last_seen_at: new Date(lastSeenAtMs).toISOString(),
    silent: !isLive(instance, nowMs),
    ...enforcedMember(instance.enforcedObservations),
  };
}
