/**
 * Publishes observations while every attached target knows their members. A verifier that does not know them would reject the
 * bundle, and its site would close. So when one appears, the next bundle has no observation: everything is enforced.
 * Source: docs/operate/observe.md "With Control".
 */
import { MAX_OBSERVATION_SECONDS } from '../../bundle/format/bundle-limits.ts';
import { keepObservations } from '../../bundle/format/observation-members.ts';
import { parseTime } from '../../protocol/rfc3339.ts';
import type { JsonObject } from '../../protocol/strict-json.ts';
import { publishChange, requireRow } from '../resource/change.ts';
import type { ControlStore } from '../store/port.ts';
import type { RowOf } from '../store/repositories/records.ts';
import type { ObservationsPublished } from '../store/repositories/tables.ts';
import type { Transaction } from '../store/transaction.ts';
import { columnsOfRequest, lacks } from './known-members.ts';
import type { ReportingTarget } from './target-tokens.ts';

/**
 * Whether a bundle that is issued now may hold the observation. One that has ended is left out, so that a site does not depend on
 * what its verifiers know any longer than it observes. Verifiers reject one that is longer than 30 days, which is possible when
 * this clock was set back.
 */
export function isObservedAt(untilSeconds: number, nowSeconds: number): boolean {
  return nowSeconds < untilSeconds && untilSeconds - nowSeconds <= MAX_OBSERVATION_SECONDS;
}

/** The content as a bundle that is issued now contains it. */
export function inBundle<C extends JsonObject>(
  content: C,
  { isWithheld, nowSeconds }: { readonly isWithheld: boolean; readonly nowSeconds: number },
): { readonly content: C; readonly observations: ObservationsPublished } {
  let observations: ObservationsPublished = 'none';
  const kept = keepObservations(content, (until) => {
    const isObserved = isObservedAt(parseTime(until) ?? 0, nowSeconds);
    if (isObserved) observations = isWithheld ? 'withheld' : 'published';
    return isObserved && !isWithheld;
  });
  return { content: kept, observations };
}

/**
 * Attached targets because of which bundles hold no observation. One that has sent no request does not count: its first request
 * waits for a bundle that it can accept.
 */
export async function targetsWithholdingObservations(
  tx: Transaction,
  siteId: string,
): Promise<readonly RowOf<'target'>[]> {
  return (await tx.targets.attached(siteId)).filter((row) => lacks(row, 'enforcement'));
}

/** Whether a bundle that is issued now withholds observations that the newest one has, or the reverse. */
export async function changesWithholding(
  tx: Transaction,
  { id, observations }: Pick<RowOf<'site'>, 'id' | 'observations'>,
): Promise<boolean> {
  if (observations === 'none') return false;
  const isWithheld = (await targetsWithholdingObservations(tx, id)).length > 0;
  return isWithheld !== (observations === 'withheld');
}

/** Requests a bundle without observations, for a target that does not know them. Takes no lock when that is done already. */
export async function withholdObservations(
  store: ControlStore,
  target: ReportingTarget,
  nowMs: number,
): Promise<void> {
  const { siteId, targetId } = target;
  const isRequested = async (tx: Transaction) => {
    const row = await tx.targets.find(targetId);
    return row !== undefined && lacks(row, 'enforcement') && (await tx.publication.hasPolicyChange(siteId));
  };
  if (await store.read(isRequested)) return;
  await store.writeUnaudited({ kind: 'site', siteId }, async (tx) => {
    await tx.propagation.noteTargets([targetId], columnsOfRequest(target, nowMs));
    const { observations } = requireRow(await tx.sites.find(siteId));
    if (observations === 'published') await publishChange(tx, siteId, { kind: 'policy' }, nowMs);
  });
}

/**
 * Publishes withheld observations when no target withholds them any more. Call it when the attached targets or their known members
 * may have changed. Takes no lock when there is nothing to publish.
 */
export async function settleObservations(store: ControlStore, siteId: string, nowMs: number): Promise<void> {
  const isDue = async (tx: Transaction) =>
    (await tx.sites.find(siteId))?.observations === 'withheld' &&
    !(await tx.publication.hasPolicyChange(siteId)) &&
    (await targetsWithholdingObservations(tx, siteId)).length === 0;
  if (!(await store.read(isDue))) return;
  await store.writeUnaudited({ kind: 'site', siteId }, async (tx) => {
    if (await isDue(tx)) await publishChange(tx, siteId, { kind: 'policy' }, nowMs);
  });
}
