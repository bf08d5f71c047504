/**
 * The port to Control's database, with two adapters: embedded SQLite (`sqlite.ts`) and PostgreSQL (`postgres.ts`). One
 * test suite runs against both (`test/control/store`).
 *
 * Reads see committed data. A mutation is one transaction under the lock of its site, or of the installation, so that
 * mutations of a site are serialized across all instances. It writes at least one audit row, or nothing at all.
 * Source: docs/operate/control-upkeep.md "Store".
 */
import type { AuditEntry } from './repositories/audit-repository.ts';
import type { Notice, Transaction } from './transaction.ts';

export type { AuditEntry } from './repositories/audit-repository.ts';
export type { Notice, Topic, Transaction } from './transaction.ts';

/**
 * The lock of a mutation: one Auth Site with everything in it, or everything outside sites. `encrypting` is shared, and
 * excludes only `master_key`, which excludes everything outside sites. `origins` excludes only itself: which origins each site has.
 */
export type Lock =
  | { readonly kind: 'site'; readonly siteId: string }
  | { readonly kind: 'installation' | 'encrypting' | 'master_key' | 'origins' };

/** Result of a mutation and its audit rows. */
export interface Mutated<T> {
  readonly result: T;
  readonly audit: readonly [AuditEntry, ...AuditEntry[]];
}

/**
 * Every method except `subscribe` and `lead` throws {@link StoreUnavailableError} when the database does not answer, and
 * {@link StoreFaultError} when it returns an unexpected error.
 */
export interface ControlStore {
  /** Runs reads on one consistent snapshot, read-only and without locks. `work` may run more than once. */
  read<T>(work: (tx: Transaction) => Promise<T>): Promise<T>;
  /**
   * The same for reads that may take long: lists, whole sites. They have a few connections of their own, for which they
   * wait, and never hold one that a revocation or a freshness statement needs.
   */
  readAside<T>(work: (tx: Transaction) => Promise<T>): Promise<T>;
  /**
   * Runs one mutation with its audit rows. `work` runs again from the start when the database asks for a retry, so it must
   * not have effects outside the transaction. After a StoreUnavailableError the mutation may have committed, because the
   * commit's response can be lost.
   * @throws UnknownSiteError when the lock's site does not exist; ConstraintError for a duplicate name or a record that is
   *   still referenced; whatever `work` throws, after a rollback
   */
  mutate<T>(lock: Lock, work: (tx: Transaction) => Promise<Mutated<T>>): Promise<T>;
  /**
   * Writes without audit rows: acknowledgements, published documents, refreshed key sets, pruning. The same transaction
   * rules apply. Pass no lock when the rows are independent.
   */
  writeUnaudited<T>(lock: Lock | undefined, work: (tx: Transaction) => Promise<T>): Promise<T>;
  /** Receives notices of all instances, after their commit. @returns a function that unsubscribes */
  subscribe(listener: (notice: Notice) => void): () => void;
  /**
   * Runs `work` while this instance holds the leader lock `name`; the signal aborts when it loses the lock. `work` should
   * run until then. If it throws or returns early, that is reported, and after a pause any instance may lead again.
   * @returns a function that stops; it resolves when `work` has ended
   */
  lead(name: string, work: (signal: AbortSignal) => Promise<void>): () => Promise<void>;
  /** @throws StoreUnavailableError when the database does not answer */
  ping(): Promise<void>;
  /** Commits a write without effect. Throws when the database accepts no writes: a full disk, a demoted server. */
  tryWrite(): Promise<void>;
  /** Stops leading, waits for running transactions, rejects new ones. */
  close(): Promise<void>;
}

/**
 * The part of the store that services need. An open transaction can also serve as their store: see
 * `resource/joined-store.ts`.
 */
export type Transactions = Pick<ControlStore, 'read' | 'readAside' | 'mutate' | 'writeUnaudited'>;

/** A failure in the background, for the log. */
export interface StoreIncident {
  readonly kind: 'lead_work_failed' | 'listener_failed' | 'notices_interrupted';
  /** Name of the leader's work; empty for the other kinds. */
  readonly name: string;
  readonly error: unknown;
}
export type ReportIncident = (incident: StoreIncident) => void;

/** The site that a mutation should lock does not exist. */
export class UnknownSiteError extends Error {
  override readonly name = 'UnknownSiteError';
}

/** The database cannot be reached or opened. The message contains no credentials. */
export class StoreUnavailableError extends Error {
  override readonly name = 'StoreUnavailableError';
}

/** A newer version has migrated the database's schema. This one has changed nothing. */
export class SchemaNewerError extends Error {
  override readonly name = 'SchemaNewerError';
  /** @param step the last migration that is unknown to this version */
  constructor(step: string) {
    super(
      `the database has the schema of a newer version (step ${step}): start that version, or restore the backup from before its first start`,
    );
  }
}

/** A write violates a constraint; the transaction is rolled back. */
export class ConstraintError extends Error {
  override readonly name = 'ConstraintError';
  /** `unique`: the name is taken. `reference`: the record is still referenced, or refers to a missing one. */
  readonly kind: 'unique' | 'reference';

  constructor(kind: 'unique' | 'reference', constraint: string) {
    super(`${kind} constraint: ${constraint}`);
    this.kind = kind;
  }
}

/** The database returned an unexpected error. Holds only its code, because the text may quote values. */
export class StoreFaultError extends Error {
  override readonly name = 'StoreFaultError';
}
