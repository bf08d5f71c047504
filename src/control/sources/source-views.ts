/** API views of sources and revisions. */

import type { SourceRevisionView, SourceView } from '../../api-contract/sources-contract.ts';
import { MAX_SHOWN_TARGETS } from '../../api-contract/vocabulary.ts';
import { momentOf, versionOf } from '../resource/change.ts';
import type { RowOf } from '../store/repositories/records.ts';
import type { Transaction } from '../store/transaction.ts';

/** View of a revision with the targets that it waits for now. */
export async function revisionViewNow(
  tx: Transaction,
  row: RowOf<'sourceRevision'>,
): Promise<SourceRevisionView> {
  const targets = await awaitedTargets(tx, row);
  if (targets.length === 0) return revisionView(row);
  return { ...revisionView(row), waiting_for: targets.map(({ id, name }) => ({ target_id: id, name })) };
}

export function revisionView(row: RowOf<'sourceRevision'>): SourceRevisionView {
  const { state } = row;
  // Removing a revision deletes its row.
  if (state === 'removed') throw new Error('a removed revision is still there');
  return {
    source_id: row.sourceId,
    revision: row.revision,
    state,
    issuer: row.issuer,
    jwks_uri: row.jwksUri,
    audience: row.audience,
    ...(row.fingerprint === null ? {} : { fingerprint: row.fingerprint }),
    ...(row.detectedScope === null ? {} : { detected_scope: row.detectedScope }),
    ...(row.validatedAtMs === null ? {} : { validated_at: momentOf(row.validatedAtMs) }),
    ...(row.failureCode === null
      ? {}
      : { failure: { code: row.failureCode, detail: row.failureDetail ?? row.failureCode } }),
    ...(row.awaitedRevision === null ? {} : { awaited_bundle_revision: row.awaitedRevision }),
    state_since: momentOf(row.stateSinceMs),
    ...versionOf(row),
  };
}

export async function sourceView(tx: Transaction, row: RowOf<'source'>): Promise<SourceView> {
  const revisions: SourceRevisionView[] = [];
  for (const revision of await tx.sources.revisions(row.id)) {
    revisions.push(await revisionViewNow(tx, revision));
  }
  return {
    source_id: row.id,
    site_id: row.siteId,
    kind: row.kind,
    display_name: row.displayName,
    on_suspend: row.onSuspend,
    on_retire: row.onRetire,
    revisions,
    ...versionOf(row),
  };
}

/** The first {@link MAX_SHOWN_TARGETS} targets; none until the bundle that lists the revision is published. */
async function awaitedTargets(
  tx: Transaction,
  { awaitedRevision, siteId, state }: RowOf<'sourceRevision'>,
): Promise<readonly RowOf<'target'>[]> {
  if (state !== 'publishing' || awaitedRevision === null) return [];
  const attached = await tx.targets.attached(siteId);
  return attached
    .filter(({ ackedRevision }) => ackedRevision !== null && ackedRevision < awaitedRevision)
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
