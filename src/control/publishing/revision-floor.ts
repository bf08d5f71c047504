/**
 * Targets tell where they are. One that is beyond what was published, or on another chain, has seen what this Control
 * does not know of: it was restored from a backup, or takes over a site that was signed by hand. It then publishes a whole
 * bundle above that, which the target takes. The total that one target may raise is bounded, since its
 * token may be stolen. Beyond that an operator decides.
 * Source: docs/bundle.md "Revision and head"; docs/control.md "Backup and restore".
 */

import { type ChainPosition, MAX_REVISION_STEP } from '../../bundle/format/chain.ts';
import { audited, placeInSite } from '../configuration/change.ts';
import { Refusal } from '../domain/refusal.ts';
import type { ControlStore } from '../store/port.ts';
import type { RowOf } from '../store/repositories/records.ts';
import type { Transaction } from '../store/transaction.ts';

/** Revisions that one target may raise its site by in all, however often it asks. */
const MAX_RAISED_BY_TARGET = MAX_REVISION_STEP;

export interface RaiseAllowances {
  /** Asked when a whole bundle is needed; where not, nothing happens, and the target asks again. */
  readonly mayRaise: () => boolean;
  /** Asked when a target that is known to be ahead tells another revision. */
  readonly mayNote: () => boolean;
}

/**
 * Records that the target is ahead, and requests a publication that it can accept, unless one exists.
 * @throws Refusal `revision_out_of_range`
 */
export async function raiseFloor(
  store: ControlStore,
  { siteId, targetId }: { readonly siteId: string; readonly targetId: string },
  told: ChainPosition,
  nowMs: number,
  { mayRaise, mayNote }: RaiseAllowances,
): Promise<void> {
  const isTooFar = await store.housekeep({ kind: 'site', siteId }, async (tx) => {
    const site = await tx.sites.find(siteId);
    const target = await tx.targets.find(targetId);
    if (site === undefined || target === undefined) throw new Refusal('not_found');
    if (!(await isAhead(tx, site, told))) return false;
    if (target.aheadRevision === null || (target.aheadRevision !== told.revision && mayNote())) {
      const aheadSinceMs = target.aheadSinceMs ?? nowMs;
      await tx.targets.note(targetId, { aheadRevision: told.revision, aheadSinceMs, lastSeenAtMs: nowMs });
    }
    if (isComing(site, told)) return false;
    const floorRevision = Math.max(site.floorRevision, told.revision);
    // A whole bundle above takes one revision in any case.
    const raisedBy = Math.max(1, floorRevision - Math.max(site.revision, site.floorRevision));
    if (target.raisedRevisions + raisedBy > MAX_RAISED_BY_TARGET) return true;
    if (!mayRaise()) return false;
    await tx.targets.note(targetId, { raisedRevisions: target.raisedRevisions + raisedBy });
    await tx.hierarchy.advance(siteId, { floorRevision, wholeNeeded: 1 });
    tx.notify({ topic: 'site_changed', reference: siteId });
    const place = await placeInSite(tx, siteId);
    const before = { revision: site.revision, floor_revision: site.floorRevision };
    const after = { floor_revision: floorRevision };
    const change = { what: 'site.raise_floor', id: siteId, place, before, after } as const;
    await tx.audit.append(audited({ actor: `target:${targetId}` }, change), nowMs);
    return false;
  });
  if (isTooFar) throw new Refusal('revision_out_of_range');
}

/** Whether nothing that is published leads on from there. */
async function isAhead(tx: Transaction, site: RowOf<'site'>, told: ChainPosition): Promise<boolean> {
  if (told.revision > site.revision) return true;
  const step = await tx.distribution.step(site.id, told.revision);
  // Whatever chain it comes from, a verifier takes a whole bundle of a higher revision.
  return step?.head !== told.head && site.baseRevision <= told.revision;
}

/** Whether the next publication will be one that it can take. */
function isComing({ revision, floorRevision, wholeNeeded }: RowOf<'site'>, told: ChainPosition): boolean {
  return wholeNeeded === 1 && Math.max(revision, floorRevision) >= told.revision;
}
