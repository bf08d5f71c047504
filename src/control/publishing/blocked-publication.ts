/**
 * Publishes a site's blocked callers, as soon as every attached target knows the bundle member `blocked`.
 * Source: docs/operate/control.md "Blocked callers".
 */
import { publishChange, requireRow } from '../resource/change.ts';
import type { ControlStore } from '../store/port.ts';
import type { RowOf } from '../store/repositories/records.ts';
import type { Transaction } from '../store/transaction.ts';
import { targetsWithout } from './known-members.ts';

/** Targets that delay the publication; none after it has begun, because a block is never withdrawn for a target. */
export async function targetsHoldingBlocksBack(
  tx: Transaction,
  siteId: string,
): Promise<readonly RowOf<'target'>[]> {
  const { blockedPublished } = requireRow(await tx.sites.find(siteId));
  return blockedPublished === 1 ? [] : targetsWithout(tx, siteId, 'blocked');
}

/** Call it under the site's lock, when its blocked callers changed or may be published now. */
export async function publishBlocked(tx: Transaction, siteId: string, nowMs: number): Promise<void> {
  if ((await targetsHoldingBlocksBack(tx, siteId)).length > 0) return;
  await tx.hierarchy.advance(siteId, { blockedPublished: 1 });
  await publishChange(tx, siteId, { kind: 'policy' }, nowMs);
}

/**
 * Call it when the attached targets or their known members may have changed. Takes no lock when there is nothing to
 * publish.
 */
export async function settleBlocked(store: ControlStore, siteId: string, nowMs: number): Promise<void> {
  const isDue = async (tx: Transaction) =>
    (await tx.blockedCallers.isWithheld(siteId)) && (await targetsHoldingBlocksBack(tx, siteId)).length === 0;
  if (!(await store.read(isDue))) return;
  await store.writeUnaudited({ kind: 'site', siteId }, async (tx) => {
    if (await isDue(tx)) await publishBlocked(tx, siteId, nowMs);
  });
}
