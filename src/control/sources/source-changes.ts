/**
 * What every change of a source has in common: its site's lock, the source as it is inside the transaction, one audit row,
 * and moves that the state machine allows.
 */
import type { AuditVerb } from '../domain/audit-kinds.ts';
import { move } from '../domain/machine.ts';
import { Refusal } from '../domain/refusal.ts';
import type { Place } from '../domain/roles.ts';
import { SOURCE_MACHINE, type SourceEvent, type SourceState } from '../domain/source.ts';
import type { AuditEntry, ControlStore, Mutated } from '../store/port.ts';
import type { RowOf } from '../store/repositories/records.ts';
import type { Transaction } from '../store/transaction.ts';
import { revisionView } from './source-views.ts';

/** Who changes it: an operator's operation, or Control itself. */
export interface By {
  readonly actor: string;
  readonly requestId?: string | undefined;
}

export const BY_CONTROL: By = { actor: 'control' };

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

/** @throws Refusal `not_found` */
export async function mutateSource<T>(
  store: ControlStore,
  sourceId: string,
  work: (hand: SourceInHand) => Promise<Mutated<T>>,
): Promise<T> {
  const { siteId } = await store.read((tx) => requireSource(tx, sourceId));
  return store.mutate({ kind: 'site', siteId }, async (tx) => {
    const source = await requireSource(tx, sourceId);
    return work({ tx, source, place: (await tx.hierarchy.placeOfSite(siteId)) ?? { siteId } });
  });
}

/** @throws Refusal `not_found` */
export function mutateRevision<T>(
  store: ControlStore,
  { sourceId, revision }: RevisionName,
  work: (hand: RevisionInHand) => Promise<Mutated<T>>,
): Promise<T> {
  return mutateSource(store, sourceId, async (hand) =>
    work({ ...hand, row: await requireRevision(hand.tx, { sourceId, revision }) }),
  );
}

export async function requireSource(tx: Transaction, sourceId: string): Promise<RowOf<'source'>> {
  const source = await tx.sources.find(sourceId);
  if (source === undefined) throw new Refusal('not_found');
  return source;
}

export async function requireRevision(
  tx: Transaction,
  { sourceId, revision }: RevisionName,
): Promise<RowOf<'sourceRevision'>> {
  const row = await tx.sourceRevisions.find(sourceId, revision);
  if (row === undefined) throw new Refusal('not_found');
  return row;
}

/** @throws Refusal `precondition_failed` */
export function expectVersion(row: { readonly version: number }, expected: number): void {
  if (row.version !== expected) throw new Refusal('precondition_failed');
}

/** @throws Refusal `source_state_conflict` */
export function stateAfter(state: SourceState, event: SourceEvent): SourceState {
  const moved = move(SOURCE_MACHINE, state, event);
  if (moved.kind === 'moved') return moved.to;
  throw new Refusal('source_state_conflict', `a revision that is ${state} does not take ${event}`);
}

/** A source is at its end when a revision was retired and none is left that could let anybody in. */
export function isEnded(revisions: readonly RowOf<'sourceRevision'>[]): boolean {
  return revisions.some(({ state }) => state === 'retired') && !revisions.some(isLiving);
}

function isLiving({ state }: RowOf<'sourceRevision'>): boolean {
  return state === 'activating' || state === 'publishing' || state === 'active' || state === 'suspended';
}

/** Bundles list sources: a whole one is due, and whoever publishes hears of it. */
export async function noteForPublishing({ tx, source }: SourceInHand, nowMs: number): Promise<void> {
  await tx.changes.record(source.siteId, { kind: 'policy' }, nowMs);
  tx.notify({ topic: 'site_changed', reference: source.siteId });
}

/** Writes the change and gives the revision as it is then. */
export async function changeRevision(
  { tx, row }: RevisionInHand,
  set: Parameters<Transaction['sourceRevisions']['change']>[1],
  nowMs: number,
): Promise<RowOf<'sourceRevision'>> {
  const since = set.state === undefined || set.state === row.state ? {} : { stateSinceMs: nowMs };
  await tx.sourceRevisions.change(row, { ...set, ...since }, nowMs);
  return requireRevision(tx, row);
}

export function revisionAudit(
  verb: AuditVerb<'source_revision'>,
  by: By,
  { row, place }: Pick<RevisionInHand, 'row' | 'place'>,
  after: RowOf<'sourceRevision'> | undefined,
  more: object = {},
): AuditEntry {
  return {
    kind: `proofgate.control.source_revision.${verb}`,
    actor: by.actor,
    resource: { kind: 'source_revision', id: `${row.sourceId}/${row.revision}` },
    place,
    before: revisionView(row),
    after: after && { ...revisionView(after), ...more },
    requestId: by.requestId,
  };
}
