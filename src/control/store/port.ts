/**
 * What Control keeps, behind one port. Two adapters: embedded SQLite (`sqlite.ts`) and PostgreSQL (`postgres.ts`); one
 * suite runs against both (`test/control/store`).
 *
 * Reads see what was committed. A mutation is one transaction: it holds the lock of its site (or of the installation), so
 * mutations of a site happen one after the other, on every instance; it writes at least one audit row, or none of it
 * happened. Source: docs/control.md "Store".
 */
import type { AuditEntry } from './audit-entry.ts';
import type { Notice } from './notice.ts';
import type { Transaction } from './transaction.ts';

export type { AuditEntry } from './audit-entry.ts';
export type { Notice, Topic } from './notice.ts';
export type { Transaction } from './transaction.ts';

/** What a mutation locks: all that belongs to one Auth Site, or everything that belongs to none. */
export type Lock = { readonly kind: 'site'; readonly siteId: string } | { readonly kind: 'installation' };

/** What a mutation gives back: its result, and what it did. */
export interface Mutated<T> {
  readonly result: T;
  readonly audit: readonly [AuditEntry, ...AuditEntry[]];
}

/**
 * Every method but `subscribe` and `lead` throws {@link StoreUnavailableError} when the database does not answer, and
 * {@link StoreFaultError} when it answers with an error that nobody foresaw.
 */
export interface ControlStore {
  /** A consistent view for several reads. Nothing is locked, nothing can be written. `work` may run more than once. */
  read<T>(work: (tx: Transaction) => Promise<T>): Promise<T>;
  /**
   * One mutation with its audit rows. Runs again, from the start, when the database asks for that: `work` must have no
   * effects outside the transaction. After a StoreUnavailableError it may have happened: the answer to the commit can be
   * what was lost.
   * @throws UnknownSiteError when the lock's site is not there; ConstraintError when a unique name is taken or something
   *   still refers to a record; whatever `work` throws, with everything undone
   */
  mutate<T>(lock: Lock, work: (tx: Transaction) => Promise<Mutated<T>>): Promise<T>;
  /**
   * What is no operator's doing and would drown the audit trail: acknowledgements, published documents, refreshed key
   * sets, pruning. Same transaction rules. Without a lock where rows are independent.
   */
  housekeep<T>(lock: Lock | undefined, work: (tx: Transaction) => Promise<T>): Promise<T>;
  /** Hears notices of this and of all other instances, after their commit. @returns how to stop */
  subscribe(listener: (notice: Notice) => void): () => void;
  /**
   * Runs `work` while this instance is the one that holds `name`, among all instances on this database; its signal aborts
   * when that is no longer so. Until stopped or closed `work` is to go on: when it throws or returns, that is reported, and
   * after a pause whoever comes first leads again.
   * @returns how to stop; resolves when `work` has ended
   */
  lead(name: string, work: (signal: AbortSignal) => Promise<void>): () => Promise<void>;
  /** @throws StoreUnavailableError when the database does not answer */
  ping(): Promise<void>;
  /** Commits something that leaves nothing. Throws when the database takes no writes: a full disk, a demoted server. */
  tryWrite(): Promise<void>;
  /** Ends what leads, waits for transactions under way, refuses new ones. */
  close(): Promise<void>;
}

/** What went wrong where nobody waits for an answer. For the log. */
export interface StoreIncident {
  readonly kind: 'lead_work_failed' | 'listener_failed' | 'notices_interrupted';
  /** Name of the work that leads; empty for the other kinds. */
  readonly name: string;
  readonly error: unknown;
}
export type ReportIncident = (incident: StoreIncident) => void;

/** A site that a mutation was to lock is not there. */
export class UnknownSiteError extends Error {
  override readonly name = 'UnknownSiteError';
}

/** The database cannot be reached or opened. The message names no credentials. */
export class StoreUnavailableError extends Error {
  override readonly name = 'StoreUnavailableError';
}

/** A newer program has changed the database's schema; nothing was changed now. */
export class SchemaNewerError extends Error {
  override readonly name = 'SchemaNewerError';
  /** @param step the last that this program does not know */
  constructor(step: string) {
    super(
      `the database has the schema of a newer version (step ${step}): start that version, or restore the backup from before its first start`,
    );
  }
}

/** What was to be written does not go with what is there; the transaction is undone. */
export class ConstraintError extends Error {
  override readonly name = 'ConstraintError';
  /** `unique`: another record has that name. `reference`: something refers to the record, or what it refers to is gone. */
  readonly kind: 'unique' | 'reference';

  constructor(kind: 'unique' | 'reference', constraint: string) {
    super(`${kind} constraint: ${constraint}`);
    this.kind = kind;
  }
}

/** The database answered with an error that nobody foresaw. Its code only: a database's text may quote values. */
export class StoreFaultError extends Error {
  override readonly name = 'StoreFaultError';
}
