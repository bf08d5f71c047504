/**
 * Which revision a target has: the oldest among its verifiers that may use a bundle. Each instance acknowledges for itself, and
 * counts until it must deny everything, or until it said that it ended. The verifiers that sign nothing count as one, while one
 * of them sends requests: how long they use a bundle is unknown, so that such a target is never over. Those that sign and are not
 * listed, because there are too many, count together.
 * Source: docs/operate/control.md "Revocation receipts".
 */
import { MAX_WAIT_SECONDS } from '../../bundle/format/bundle-limits.ts';
import { endOfUse } from '../../bundle/format/revocation-receipt.ts';
import type { RowOf } from '../store/repositories/records.ts';
import type { Transaction } from '../store/transaction.ts';
import { boundMembers } from './signed-bounds.ts';

type Target = RowOf<'target'>;
type Instance = RowOf<'targetInstance'>;
type Bounds = ReadonlyMap<string, RowOf<'signedBound'>>;

export async function boundsOf(tx: Transaction, of: Iterable<{ readonly siteId: string }>): Promise<Bounds> {
  const siteIds = [...new Set([...of].map(({ siteId }) => siteId))];
  const rows = siteIds.length === 0 ? [] : await tx.signedBounds.ofSites(siteIds);
  return new Map(rows.map((row) => [row.siteId, row]));
}

/**
 * When a verifier that sends its last request now denies everything. Control may answer it for as long as a poll waits.
 * @param bound undefined: it is unknown what was signed
 * @param instance undefined, or without a key: only `expires_at` is known to limit it
 */
export function freshUntilMs(
  bound: RowOf<'signedBound'> | undefined,
  instance: Pick<Instance, 'breakGlass' | 'realtimeStalenessSeconds'> | undefined,
): number | null {
  if (bound === undefined || bound.revision === 0) return null;
  const staleness = instance?.breakGlass === 0 ? instance.realtimeStalenessSeconds : null;
  const end = endOfUse({
    ...boundMembers(bound),
    realtime_staleness_seconds: staleness ?? 0,
    unlimited_until: staleness === null ? Number.POSITIVE_INFINITY : 0,
  });
  return (end + MAX_WAIT_SECONDS) * 1000;
}

/** Whether all verifiers of the target deny everything. */
export function isOver({ freshUntilMs: untilMs }: Target, nowMs: number): boolean {
  return untilMs !== null && untilMs <= nowMs;
}

/** Instances of a target that are not listed. */
export interface Unlisted {
  /** The oldest that one of them has. */
  readonly revision: number;
  /** When the last one denies everything. */
  readonly untilMs: number;
}

/** One that stands for both. */
export function eitherOf(one: Unlisted | undefined, other: Unlisted): Unlisted {
  if (one === undefined) return other;
  return {
    revision: Math.min(one.revision, other.revision),
    untilMs: Math.max(one.untilMs, other.untilMs),
  };
}

/**
 * Adds instances that are not listed. While the first entry lasts, they join the next one: a target that always has too many
 * instances would otherwise wait forever for the oldest revision that one of them ever had.
 */
function withUnlisted(target: Target, more: Unlisted | undefined, nowMs: number): Target {
  let [first, next] = unlistedOf(target).filter(({ untilMs }) => untilMs > nowMs);
  const isCovered =
    more === undefined ||
    (first !== undefined && first.revision <= more.revision && first.untilMs >= more.untilMs);
  if (!isCovered && first === undefined) first = more;
  else if (!isCovered) next = eitherOf(next, more);
  return {
    ...target,
    ...{ unlistedRevision: first?.revision ?? null, unlistedUntilMs: first?.untilMs ?? null },
    ...{ nextUnlistedRevision: next?.revision ?? null, nextUnlistedUntilMs: next?.untilMs ?? null },
  };
}

/** At most two, in order. */
export function unlistedOf(target: Target): readonly Unlisted[] {
  const { nextUnlistedRevision, nextUnlistedUntilMs, unlistedRevision, unlistedUntilMs } = target;
  return [
    { revision: unlistedRevision, untilMs: unlistedUntilMs },
    { revision: nextUnlistedRevision, untilMs: nextUnlistedUntilMs },
  ].filter((entry): entry is Unlisted => entry.revision !== null && entry.untilMs !== null);
}

interface Holder {
  readonly revision: number | null;
  readonly head: string | null;
  readonly ackedAtMs: number | null;
  /** Null while unknown. */
  readonly untilMs: number | null;
}

function holdersOf(target: Target, instances: readonly Instance[]): readonly Holder[] {
  const unsigned = {
    revision: target.unsignedRevision,
    head: target.unsignedHead,
    ackedAtMs: target.ackedAtMs,
    untilMs: target.unsignedUntilMs,
  };
  const signing = instances.filter(({ publicKey }) => publicKey !== null);
  const unlisted = unlistedOf(target).map((entry) => ({ ...entry, head: null, ackedAtMs: null }));
  return [unsigned, ...signing.map(holderOf), ...unlisted].filter(({ revision }) => revision !== null);
}

/** What it has loaded counts before it is acknowledged: it may be less. */
function holderOf(instance: Instance): Holder {
  const { ackedAtMs, ackedHead: head, ackedRevision, freshUntilMs: untilMs, revision } = instance;
  return { revision: ackedRevision ?? revision, head, ackedAtMs, untilMs };
}

/**
 * Columns of a target. Without a verifier that may use a bundle, its position stays.
 * @param more instances that were not listed now
 */
export function heldColumns(
  row: Target,
  instances: readonly Instance[],
  more: Unlisted | undefined,
  nowMs: number,
) {
  const target = withUnlisted(row, more, nowMs);
  const { nextUnlistedRevision, nextUnlistedUntilMs, unlistedRevision, unlistedUntilMs } = target;
  const unlisted = { nextUnlistedRevision, nextUnlistedUntilMs, unlistedRevision, unlistedUntilMs };
  return { ...unlisted, ...positionColumns(target, instances, nowMs) };
}

function positionColumns(target: Target, instances: readonly Instance[], nowMs: number) {
  const holders = holdersOf(target, instances);
  if (holders.length === 0) return {};
  const isUnknown = target.unsignedRevision !== null || holders.some((holder) => holder.untilMs === null);
  const untilMs = isUnknown ? null : Math.max(...holders.map((holder) => holder.untilMs ?? 0));
  const [oldest] = holders
    .filter((holder) => holder.untilMs === null || holder.untilMs > nowMs)
    .toSorted((a, b) => (a.revision ?? 0) - (b.revision ?? 0));
  if (oldest === undefined) return { freshUntilMs: untilMs };
  const { ackedAtMs, head, revision } = oldest;
  return { ackedRevision: revision, ackedHead: head, ackedAtMs, freshUntilMs: untilMs };
}
