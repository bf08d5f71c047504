/**
 * Targets tell where they are. One that is beyond what was published, or on another chain, has seen what this Control
 * does not know of: it was restored from a backup, or takes over a site that was signed by hand. It then publishes a whole
 * bundle above that, which the target takes.
 * Source: docs/bundle.md "Revision and head".
 */
import { type ChainPosition, MAX_REVISION_STEP } from '../../bundle/chain.ts';
import { Refusal } from '../domain/refusal.ts';
import type { ControlStore } from '../store/port.ts';
import type { RowOf } from '../store/repositories/records.ts';
import type { Transaction } from '../store/transaction.ts';

/**
 * Sees to it that something is published that the target can take, unless it is already.
 * @param mayRaise asked when a whole bundle is needed for it; where not, nothing happens, and the target asks again
 * @throws Refusal `revision_out_of_range`
 */
export async function raiseFloor(
  store: ControlStore,
  { siteId, targetId }: { readonly siteId: string; readonly targetId: string },
  told: ChainPosition,
  nowMs: number,
  mayRaise: () => boolean,
): Promise<void> {
  await store.housekeep({ kind: 'site', siteId }, async (tx) => {
    const site = await tx.hierarchy.site(siteId);
    if (site === undefined) throw new Refusal('not_found');
    if (!(await isNeeded(tx, site, told))) return;
    if (told.revision - site.revision > MAX_REVISION_STEP) throw new Refusal('revision_out_of_range');
    if (!mayRaise()) return;
    const floorRevision = Math.max(site.floorRevision, told.revision);
    await tx.hierarchy.advance(siteId, { floorRevision, wholeNeeded: 1 });
    tx.notify({ topic: 'site_changed', reference: siteId });
    await tx.audit.append(
      {
        kind: 'proofgate.control.site.raise_floor',
        actor: `target:${targetId}`,
        resource: { kind: 'site', id: siteId },
        place: (await tx.hierarchy.placeOfSite(siteId)) ?? { siteId },
        before: { revision: site.revision, floor_revision: site.floorRevision },
        after: { floor_revision: floorRevision },
      },
      nowMs,
    );
  });
}

async function isNeeded(tx: Transaction, site: RowOf<'site'>, told: ChainPosition): Promise<boolean> {
  if (told.revision > site.revision) {
    return !(site.wholeNeeded === 1 && site.floorRevision >= told.revision);
  }
  const step = await tx.distribution.step(site.id, told.revision);
  if (step?.head === told.head) return false;
  // Whatever chain it comes from, a verifier takes a whole bundle of a higher revision.
  return site.baseRevision <= told.revision && site.wholeNeeded === 0;
}
