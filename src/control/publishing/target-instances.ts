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
import { boundsOf, eitherOf, freshUntilMs, type Unlisted } from './held-revision.ts';

type Instance = RowOf<'targetInstance'>;

/**
 * A token may be stolen: its holder cannot fill the table, nor displace instances that poll, but can keep new ones out. Those that
 * are not listed count together, so that the target waits for them, too.
 */
export const MAX_INSTANCES = 256;
/** In this time each instance sends a request, and Control writes that it did. */
export const LIVE_MS = MAX_WAIT_SECONDS * 2 * 1000 + 10_000;
/**
 * How long an instance that ended is shown, and longer while it may use a bundle. Its row goes when another instance of the target
 * sends a request, or when the target is detached; a target that is never heard of again keeps its last ones.
 */
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

/** Those of a target since the last write. */
export interface SeenInstances {
  readonly listed: readonly SeenInstance[];
  /** Stands for those for which there was no room. Its ID says nothing: that instance may be listed, with another revision. */
  readonly unlisted: SeenInstance | undefined;
}

export interface NotedInstances {
  /** IDs of those that are listed, by target. */
  readonly kept: ReadonlyMap<string, ReadonlySet<string>>;
  /** By target. */
  readonly unlisted: ReadonlyMap<string, Unlisted>;
}

/**
 * Writes which instances sent a request since the last write.
 * @param seen by target
 */
export async function noteInstances(
  tx: Transaction,
  seen: ReadonlyMap<string, SeenInstances>,
  nowMs: number,
  most = MAX_INSTANCES,
): Promise<NotedInstances> {
  const keptIds = new Map<string, ReadonlySet<string>>();
  const unlisted = new Map<string, Unlisted>();
  if (seen.size === 0) return { kept: keptIds, unlisted };
  const known = await tx.targetInstances.ofAttached([...seen.keys()]);
  const bounds = await boundsOf(
    tx,
    [...seen.values()].flatMap(({ listed, unlisted: other = [] }) => listed.concat(other)),
  );
  const withEnd = (instance: Instance) => ({
    ...instance,
    freshUntilMs: freshUntilMs(bounds.get(instance.siteId), instance),
  });
  const rows: Instance[] = [];
  for (const [targetId, before] of known) {
    const { listed = [], unlisted: others } = seen.get(targetId) ?? {};
    const { ended, evicted, kept } = nextInstances(before, listed, nowMs, most);
    for (const instance of ended) await tx.targetInstances.remove(instance);
    rows.push(...kept.filter(({ lastSeenAtMs }) => lastSeenAtMs === nowMs).map(withEnd));
    for (const instance of evicted) {
      addUnlisted(unlisted, instance.lastSeenAtMs === nowMs ? withEnd(instance) : instance);
    }
    if (others !== undefined) addUnlisted(unlisted, withEnd(newRow(others, nowMs)));
    keptIds.set(targetId, new Set(kept.map(({ instanceId }) => instanceId)));
  }
  // One statement for all targets, because their rows are locked meanwhile.
  await tx.targetInstances.put(rows);
  return { kept: keptIds, unlisted };
}

/** Leaves out those that sign nothing, which count with the target, and those that have no bundle. */
function addUnlisted(unlisted: Map<string, Unlisted>, instance: Instance): void {
  const { ackedRevision, freshUntilMs: untilMs, lastSeenAtMs, publicKey, targetId } = instance;
  const revision = ackedRevision ?? instance.revision;
  if (publicKey === null || revision === null) return;
  const entry = { revision, untilMs: untilMs ?? lastSeenAtMs + KEPT_MS };
  unlisted.set(targetId, eitherOf(unlisted.get(targetId), entry));
}

/** Stands for both in requests, when neither is listed: it has the older revision, and uses it longer. */
export function bothUnlisted(one: SeenInstance | undefined, other: SeenInstance): SeenInstance | undefined {
  if (other.signing === undefined || other.revision === undefined) return one;
  if (one?.signing === undefined || one.revision === undefined) return other;
  const seconds = [one, other].map(({ signing }) => signing?.realtimeStalenessSeconds ?? 0);
  const hasBreakGlass = one.signing.hasBreakGlass || other.signing.hasBreakGlass;
  return {
    ...other,
    revision: Math.min(one.revision, other.revision),
    signing: { ...other.signing, realtimeStalenessSeconds: Math.max(...seconds), hasBreakGlass },
  };
}

/** At most `most`: the silent ones give way, the longest silent first, and live ones never to a new one. */
export function nextInstances(
  known: readonly Instance[],
  seen: readonly SeenInstance[],
  nowMs: number,
  most = MAX_INSTANCES,
): {
  readonly kept: readonly Instance[];
  /** Known ones whose rows go. */
  readonly ended: readonly Instance[];
  /** Those that do not fit, known or new. */
  readonly evicted: readonly Instance[];
} {
  const instances = new Map(known.map((instance) => [instance.instanceId, instance]));
  for (const instance of seen) {
    const before = instances.get(instance.instanceId);
    instances.set(instance.instanceId, {
      ...NOT_ACKNOWLEDGED,
      ...before,
      ...columnsOf(instance, before, nowMs),
      ...polledColumns(instance, before),
    });
  }
  const recent = [...instances.values()].filter((instance) => isRecent(instance, nowMs));
  const ranked = recent.toSorted(
    (a, b) => silenceMs(a, nowMs) - silenceMs(b, nowMs) || a.firstSeenAtMs - b.firstSeenAtMs,
  );
  const kept = ranked.slice(0, most);
  const keptIds = new Set(kept.map(({ instanceId }) => instanceId));
  const ended = known.filter(({ instanceId }) => !keptIds.has(instanceId));
  return { kept, ended, evicted: ranked.slice(most) };
}

const NOT_ACKNOWLEDGED = {
  ...{ ackedRevision: null, ackedHead: null, ackedAtMs: null, signedAtMs: null, freshUntilMs: null },
};

function newRow(instance: SeenInstance, nowMs: number): Instance {
  return { ...NOT_ACKNOWLEDGED, ...columnsOf(instance, undefined, nowMs), ...signedColumns(instance) };
}

function columnsOf(instance: SeenInstance, before: Instance | undefined, nowMs: number) {
  const { enforcedObservations, instanceId, replayStore = null, siteId, targetId, version } = instance;
  return {
    ...{ targetId, instanceId, siteId, version, replayStore, enforcedObservations },
    ...{ firstSeenAtMs: before?.firstSeenAtMs ?? nowMs, lastSeenAtMs: nowMs },
  };
}

/** What an acknowledgement signs, and the revision that came with it. */
function signedColumns({ revision, signing }: SeenInstance) {
  return {
    revision: revision ?? null,
    publicKey: signing?.publicKey ?? null,
    realtimeStalenessSeconds: signing?.realtimeStalenessSeconds ?? null,
    breakGlass: signing === undefined ? null : signing.hasBreakGlass ? (1 as const) : (0 as const),
  };
}

/**
 * Polls are not signed: anyone with the target's token can send one. So a poll never changes a known key or its settings. Before the
 * first acknowledgement, the oldest reported revision counts.
 */
function polledColumns(instance: SeenInstance, before: Instance | undefined) {
  const polled = signedColumns(instance);
  if (before === undefined || before.publicKey === null) return polled;
  const { ackedRevision, breakGlass, publicKey, realtimeStalenessSeconds } = before;
  const oldest =
    before.revision === null
      ? polled.revision
      : Math.min(before.revision, polled.revision ?? before.revision);
  const revision = ackedRevision === null ? oldest : polled.revision;
  return { revision, breakGlass, publicKey, realtimeStalenessSeconds };
}

/** An instance that ended without a word counts until it must deny everything. */
function isRecent({ freshUntilMs, lastSeenAtMs }: Instance, nowMs: number): boolean {
  return nowMs - lastSeenAtMs < KEPT_MS || nowMs < (freshUntilMs ?? 0);
}

/** 0 for a live instance. */
function silenceMs(instance: Instance, nowMs: number): number {
  return isLive(instance, nowMs) ? 0 : nowMs - instance.lastSeenAtMs;
}

function isLive({ lastSeenAtMs }: Instance, nowMs: number): boolean {
  return nowMs - lastSeenAtMs <= LIVE_MS;
}

/** An acknowledgement that an instance signed. */
export interface SignedReport {
  readonly instance: SeenInstance;
  readonly revision: number;
  readonly head: string;
  readonly signedAtMs: number;
  /** Whether it decides no more requests. */
  readonly hasEnded: boolean;
}

/**
 * Writes what instances acknowledged, the last one of each counts.
 * @param reports of attached targets, in order
 * @returns those that are not listed, by target
 */
export async function noteAcknowledged(
  tx: Transaction,
  reports: readonly SignedReport[],
  nowMs: number,
  most = MAX_INSTANCES,
): Promise<ReadonlyMap<string, Unlisted>> {
  const unlisted = new Map<string, Unlisted>();
  const known = await tx.targetInstances.ofAttached([
    ...new Set(reports.map(({ instance }) => instance.targetId)),
  ]);
  const bounds = await boundsOf(
    tx,
    reports.map(({ instance }) => instance),
  );
  const rows = new Map<string, Instance>();
  for (const { hasEnded, head, instance, revision, signedAtMs } of reports) {
    const { instanceId, siteId, targetId } = instance;
    const place = `${targetId} ${instanceId}`;
    const stored = known.get(targetId)?.find((row) => row.instanceId === instanceId);
    const before = rows.get(place) ?? stored;
    // A copy of an earlier one says nothing new.
    if ((before?.signedAtMs ?? 0) >= signedAtMs) continue;
    rows.delete(place);
    if (hasEnded) {
      if (stored !== undefined) await tx.targetInstances.remove(stored);
      continue;
    }
    const seen = {
      ...{ ...NOT_ACKNOWLEDGED, ...before, ...columnsOf(instance, before, nowMs) },
      ...signedColumns(instance),
    };
    const acked = { ackedRevision: revision, ackedHead: head, ackedAtMs: nowMs, signedAtMs };
    const row = { ...seen, ...acked, freshUntilMs: freshUntilMs(bounds.get(siteId), seen) };
    // Control lists no more instances than before.
    const isFull = before === undefined && (known.get(targetId)?.length ?? most) >= most;
    if (isFull) addUnlisted(unlisted, row);
    else rows.set(place, row);
  }
  await tx.targetInstances.putAcknowledged([...rows.values()]);
  return unlisted;
}

/** The instances of a site, without those that ended long ago. */
export function recentInstances(
  tx: Transaction,
  siteId: string,
  nowMs: number,
): Promise<readonly Instance[]> {
  return tx.targetInstances.ofSite(siteId, nowMs - KEPT_MS, nowMs);
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
  const { ackedRevision, freshUntilMs: untilMs, publicKey } = instance;
  return {
    instance_id: instanceId,
    version,
    ...(replayStore === null ? {} : { replay_store: replayStore }),
    ...(revision === null ? {} : { revision }),
    ...(ackedRevision === null ? {} : { acked_revision: ackedRevision }),
    ...(publicKey === null || untilMs === null ? {} : { may_allow_until: new Date(untilMs).toISOString() }),
    enforced_observations: enforcedObservations,
    first_seen_at: new Date(firstSeenAtMs).toISOString(),
    last_seen_at: new Date(lastSeenAtMs).toISOString(),
    silent: !isLive(instance, nowMs),
  };
}
