/**
 * Handles targets that are ahead of the published chain, or on another one: Control was restored from a backup, or takes
 * over a site that was signed by hand. Control then publishes a whole bundle with a higher revision, which the target
 * accepts. The total that one target may raise the revision is limited, because its token may be stolen. Above the
 * limit an operator decides.
 * Source: docs/design/bundle.md "Revision and head"; docs/operate/control-upkeep.md "Backup and restore".
 */

import { type ChainPosition, MAX_REVISION_STEP } from '../../bundle/format/chain.ts';
import { ApiProblem } from '../domain/api-problem.ts';
import { audited, placeInSite } from '../resource/change.ts';
import type { ControlStore } from '../store/port.ts';
import type { RowOf } from '../store/repositories/records.ts';
import type { Transaction } from '../store/transaction.ts';

/** Maximum number of revisions by which one target may raise its site in total. */
const MAX_RAISED_BY_TARGET = MAX_REVISION_STEP;

export interface RaiseAllowances {
  /** Rate limit of whole bundles. If it returns false, nothing happens; the target's next poll tries again. */
  readonly mayRaise: () => boolean;
  /** Rate limit of updates of the revision that a target ahead reports. */
  readonly mayNote: () => boolean;
}

/**
 * Records that the target is ahead, and requests a publication that it can accept, unless one exists.
 * @throws ApiProblem `revision_out_of_range`
 */
export async function raiseFloor(
  store: ControlStore,
  { siteId, targetId }: { readonly siteId: string; readonly targetId: string },
  reported: ChainPosition,
  nowMs: number,
  { mayRaise, mayNote }: RaiseAllowances,
): Promise<void> {
  const isTooFar = await store.writeUnaudited({ kind: 'site', siteId }, async (tx) => {
    const site = await tx.sites.find(siteId);
    const target = await tx.targets.find(targetId);
    if (site === undefined || target === undefined) throw new ApiProblem('not_found');
    if (!(await isAhead(tx, site, reported))) return false;
    if (target.aheadRevision === null || (target.aheadRevision !== reported.revision && mayNote())) {
      const aheadSinceMs = target.aheadSinceMs ?? nowMs;
      await tx.targets.note(targetId, {
        aheadRevision: reported.revision,
        aheadSinceMs,
        lastSeenAtMs: nowMs,
      });
    }
    if (isComing(site, reported)) return false;
    const floorRevision = Math.max(site.floorRevision, reported.revision);
    // A whole bundle always uses at least one revision.
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
  if (isTooFar) throw new ApiProblem('revision_out_of_range');
}

/** Whether nothing published continues from the target's position. */
async function isAhead(tx: Transaction, site: RowOf<'site'>, reported: ChainPosition): Promise<boolean> {
  if (reported.revision > site.revision) return true;
  const step = await tx.distribution.step(site.id, reported.revision);
  // A verifier accepts a whole bundle of a higher revision from any chain.
  return step?.head !== reported.head && site.baseRevision <= reported.revision;
}

/** Whether the next publication will be one that the target accepts. */
function isComing({ revision, floorRevision, wholeNeeded }: RowOf<'site'>, reported: ChainPosition): boolean {
  return wholeNeeded === 1 && Math.max(revision, floorRevision) >= reported.revision;
}
