/**
 * Helpers for changes of a source: the site's lock, the current rows, one audit row, and the state machine's transitions.
 */

import type { SourceState } from '../../api-contract/vocabulary.ts';
import { ApiProblem } from '../domain/api-problem.ts';
import type { AuditVerb } from '../domain/audit-kinds.ts';
import { move } from '../domain/machine.ts';
import type { Place } from '../domain/roles.ts';
import { SOURCE_MACHINE, type SourceEvent } from '../domain/source-states.ts';
import { audited, type By, found, placeInSite, publishChange } from '../resource/change.ts';
import type { AuditEntry, ControlStore, Mutated } from '../store/port.ts';
import type { RowOf } from '../store/repositories/records.ts';
import type { Transaction } from '../store/transaction.ts';
import { revisionView } from './source-views.ts';

/** One revision of a source. */
export interface RevisionName {
  readonly sourceId: string;
  readonly revision: number;
}

export interface SourceInHand {
  readonly tx: Transaction;
  readonly source: RowOf<'source'>;
  readonly place: Place;
}

export interface RevisionInHand extends SourceInHand {
  readonly row: RowOf<'sourceRevision'>;
}

/** @throws ApiProblem `not_found` */
async function mutateSource<T>(
  store: ControlStore,
  sourceId: string,
  work: (hand: SourceInHand) => Promise<Mutated<T>>,
): Promise<T> {
  const { siteId } = await store.read(async (tx) => found(await tx.sources.find(sourceId)));
  return store.mutate({ kind: 'site', siteId }, async (tx) => {
    const source = found(await tx.sources.find(sourceId));
    return work({ tx, source, place: await placeInSite(tx, siteId) });
  });
}

/** @throws ApiProblem `not_found` */
export function mutateRevision<T>(
  store: ControlStore,
  { sourceId, revision }: RevisionName,
  work: (hand: RevisionInHand) => Promise<Mutated<T>>,
): Promise<T> {
  return mutateSource(store, sourceId, async (hand) =>
    work({ ...hand, row: found(await hand.tx.sourceRevisions.find(sourceId, revision)) }),
  );
}

/** @throws ApiProblem `source_state_conflict` */
export function stateAfter(state: SourceState, event: SourceEvent): SourceState {
  const moved = move(SOURCE_MACHINE, state, event);
  if (moved.kind === 'moved') return moved.to;
  throw new ApiProblem('source_state_conflict', `a revision that is ${state} does not take ${event}`);
}

/** Whether the source has ended: a revision was retired, and no other could still accept enrollments. */
export function isEnded(revisions: readonly RowOf<'sourceRevision'>[]): boolean {
  return revisions.some(({ state }) => state === 'retired') && !revisions.some(isLiving);
}

function isLiving({ state }: RowOf<'sourceRevision'>): boolean {
  return state === 'activating' || state === 'publishing' || state === 'active' || state === 'suspended';
}

/** Requests a whole bundle, because bundles list sources. */
export async function noteForPublishing({ tx, source }: SourceInHand, nowMs: number): Promise<void> {
  await publishChange(tx, source.siteId, { kind: 'policy' }, nowMs);
}

/** Writes the change and returns the updated revision. */
export async function changeRevision(
  { tx, row }: RevisionInHand,
  set: Parameters<Transaction['sourceRevisions']['change']>[1],
  nowMs: number,
): Promise<RowOf<'sourceRevision'>> {
  const since = set.state === undefined || set.state === row.state ? {} : { stateSinceMs: nowMs };
  await tx.sourceRevisions.change(row, { ...set, ...since }, nowMs);
  return found(await tx.sourceRevisions.find(row.sourceId, row.revision));
}

export function revisionAudit(
  verb: AuditVerb<'source_revision'>,
  by: By,
  { row, place }: Pick<RevisionInHand, 'row' | 'place'>,
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
