/** Lists the targets that a publishing source revision waits for. Source: docs/control.md "Trust Anchor Source". */
import { MAX_SHOWN_TARGETS } from '../domain/source.ts';
import type { RowOf } from '../store/repositories/records.ts';
import type { Transaction } from '../store/transaction.ts';

/** The first {@link MAX_SHOWN_TARGETS} targets; none until the bundle that lists the revision is published. */
export async function awaitedTargets(
  tx: Transaction,
  { awaitedRevision, siteId, state }: RowOf<'sourceRevision'>,
): Promise<readonly RowOf<'target'>[]> {
  if (state !== 'publishing' || awaitedRevision === null) return [];
  const attached = await tx.targets.attached(siteId);
  return attached
    .filter(({ ackedRevision }) => (ackedRevision ?? 0) < awaitedRevision)
    .slice(0, MAX_SHOWN_TARGETS);
}

/** Message for operators; it names targets. */
export async function whyNotActive(tx: Transaction, row: RowOf<'sourceRevision'>): Promise<string> {
  if (row.state !== 'publishing') return `the revision is ${row.state}`;
  const targets = await awaitedTargets(tx, row);
  if (targets.length === 0) return 'the revision is publishing: its bundle is not published yet';
  const names = targets.map(({ id, name }) => `${name} (${id})`).join(', ');
  return `the revision is publishing: not acknowledged yet by target ${names}`;
}
