/**
 * Helpers for changes of a source: the site's lock, the current rows, one audit row, and the state machine's transitions.
 */

import type { SourceRevisionView } from '../contract/sources-contract.ts';
import type { SourceState } from '../contract/vocabulary.ts';
import { ApiProblem } from '../domain/api-problem.ts';
import type { AuditVerb } from '../domain/audit-kinds.ts';
import { move } from '../domain/machine.ts';
import type { ScopePath } from '../domain/roles.ts';
import { holdsSlot, SOURCE_MACHINE, type SourceEvent } from '../domain/source-states.ts';
import { audited, type By, placeInSite, publishChange, requireRow } from '../resource/change.ts';
import type { ResourceDeps } from '../resource/versioned-resource.ts';
import type { AuditEntry, Mutated, Transactions } from '../store/port.ts';
import type { RowOf } from '../store/repositories/records.ts';
import type { Transaction } from '../store/transaction.ts';
import { revisionView } from './source-views.ts';

/** One revision of a source. */
export interface RevisionName {
  readonly sourceId: string;
  readonly revision: number;
}

/** A revision under its site's lock. */
export interface RevisionContext {
  readonly tx: Transaction;
  readonly source: RowOf<'source'>;
  readonly row: RowOf<'sourceRevision'>;
  readonly place: ScopePath;
}

/** Columns that only validation sets, before it. */
export const NOT_VALIDATED = {
  fingerprint: null,
  detectedScope: null,
  validatedAtMs: null,
  failureCode: null,
  failureDetail: null,
} as const;

interface RevisionChange {
  readonly verb: AuditVerb<'source_revision'>;
  readonly set: Parameters<Transaction['sourceRevisions']['change']>[1];
  /** Further members of the audit event. */
  readonly more?: object;
  readonly alsoAudited?: readonly AuditEntry[];
}

/**
 * Changes one revision in a transaction, with its audit event.
 * @throws ApiProblem `not_found`, and what `decide` throws
 */
export function changeRevision(
  { store, nowMs: clock }: ResourceDeps,
  name: RevisionName,
  by: By,
  decide: (context: RevisionContext, nowMs: number) => Promise<RevisionChange>,
): Promise<SourceRevisionView> {
  return mutateRevision(store, name, async (context) => {
    const nowMs = clock();
    const { verb, set, more, alsoAudited = [] } = await decide(context, nowMs);
    const { tx, row } = context;
    const since = set.state === undefined || set.state === row.state ? {} : { stateSinceMs: nowMs };
    const after = await tx.sourceRevisions.change(row, { ...set, ...since }, nowMs);
    const entry = revisionAudit(verb, by, context, after, more);
    return { result: revisionView(after), audit: [entry, ...alsoAudited] };
  });
}

/** @throws ApiProblem `not_found` */
export async function mutateRevision<T>(
  store: Transactions,
  { sourceId, revision }: RevisionName,
  work: (context: RevisionContext) => Promise<Mutated<T>>,
): Promise<T> {
  const { siteId } = await store.read(async (tx) => requireRow(await tx.sources.find(sourceId)));
  return store.mutate({ kind: 'site', siteId }, async (tx) => {
    const source = requireRow(await tx.sources.find(sourceId));
    const row = requireRow(await tx.sourceRevisions.find(sourceId, revision));
    return work({ tx, source, row, place: await placeInSite(tx, siteId) });
  });
}

/** @throws ApiProblem `source_state_conflict` */
export function stateAfter(state: SourceState, event: SourceEvent): SourceState {
  const moved = move(SOURCE_MACHINE, state, event);
  if (moved.kind === 'moved') return moved.to;
  throw new ApiProblem('source_state_conflict', `a revision that is ${state} does not take ${event}`);
}

/** Whether the source has ended: a revision was retired, and no other could still accept enrollments. */
export function isEnded(revisions: readonly RowOf<'sourceRevision'>[]): boolean {
  return (
    revisions.some(({ state }) => state === 'retired') && !revisions.some(({ state }) => holdsSlot(state))
  );
}

/** Requests a whole bundle, because bundles list sources. */
export async function publishSources({ tx, source }: RevisionContext, nowMs: number): Promise<void> {
  await publishChange(tx, source.siteId, { kind: 'policy' }, nowMs);
}

export function revisionAudit(
  verb: AuditVerb<'source_revision'>,
  by: By,
  { row, place }: Pick<RevisionContext, 'row' | 'place'>,
  after: RowOf<'sourceRevision'> | undefined,
  more: object = {},
): AuditEntry {
  return audited(by, {
    what: `source_revision.${verb}`,
    id: `${row.sourceId}/${row.revision}`,
    place,
    before: revisionView(row),
    after: after && { ...revisionView(after), ...more },
  });
}
