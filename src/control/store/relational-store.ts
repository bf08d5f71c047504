/**
 * The store over one SQL database, whichever it is: transactions, locks, audit, notices. What the databases do
 * differently is an {@link Engine}.
 */
import { EventEmitter } from 'node:events';
import type { Kysely } from 'kysely';
import {
  type ControlStore,
  type Lock,
  type Mutated,
  type Notice,
  StoreUnavailableError,
  UnknownSiteError,
} from './port.ts';
import type { Tables } from './tables.ts';
import { type Database, Transaction } from './transaction.ts';

/** What a database brings with it. */
export interface Engine {
  readonly db: Kysely<Tables>;
  /** Waits until nobody else mutates what the lock covers. @returns whether there is such a site */
  lock(db: Database, lock: Lock): Promise<boolean>;
  /** Inside the transaction: other instances hear of it when it commits. */
  announce(db: Database, notices: readonly Notice[]): Promise<void>;
  /** Notices of other instances. */
  listen(listener: (notice: Notice) => void): void;
  lead(name: string, work: (signal: AbortSignal) => Promise<void>): () => Promise<void>;
  /** Whether the same transaction may succeed when it runs again. */
  isTransient(error: unknown): boolean;
  isUnavailable(error: unknown): boolean;
  close(): Promise<void>;
}

const MAX_ATTEMPTS = 5;

export class RelationalStore implements ControlStore {
  readonly #engine: Engine;
  readonly #nowMs: () => number;
  readonly #notices = new EventEmitter<{ notice: [Notice] }>();

  constructor(engine: Engine, nowMs: () => number) {
    this.#engine = engine;
    this.#nowMs = nowMs;
    this.#notices.setMaxListeners(0);
    engine.listen((notice) => this.#notices.emit('notice', notice));
  }

  async read<T>(work: (tx: Transaction) => Promise<T>): Promise<T> {
    const { result } = await this.#transact(work);
    return result;
  }

  async mutate<T>(lock: Lock, work: (tx: Transaction) => Promise<Mutated<T>>): Promise<T> {
    return this.#write(lock, async (tx) => {
      const { result, audit } = await work(tx);
      for (const entry of audit) await tx.audit.append(entry, this.#nowMs());
      return result;
    });
  }

  housekeep<T>(lock: Lock | undefined, work: (tx: Transaction) => Promise<T>): Promise<T> {
    return this.#write(lock, work);
  }

  async #write<T>(lock: Lock | undefined, work: (tx: Transaction) => Promise<T>): Promise<T> {
    const { result, notices } = await this.#transact(async (tx, db) => {
      if (lock !== undefined && !(await this.#engine.lock(db, lock))) {
        throw new UnknownSiteError('there is no such site');
      }
      const value = await work(tx);
      await this.#engine.announce(db, tx.notices);
      return value;
    });
    for (const notice of notices) this.#notices.emit('notice', notice);
    return result;
  }

  async #transact<T>(
    work: (tx: Transaction, db: Database) => Promise<T>,
  ): Promise<{ readonly result: T; readonly notices: readonly Notice[] }> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#engine.db.transaction().execute(async (db) => {
          const tx = new Transaction(db);
          const result = await work(tx, db);
          return { result, notices: tx.notices };
        });
      } catch (error) {
        if (attempt < MAX_ATTEMPTS && this.#engine.isTransient(error)) continue;
        throw this.#engine.isUnavailable(error) ? unavailable(error) : error;
      }
    }
  }

  subscribe(listener: (notice: Notice) => void): () => void {
    this.#notices.on('notice', listener);
    return () => this.#notices.off('notice', listener);
  }

  lead(name: string, work: (signal: AbortSignal) => Promise<void>): () => Promise<void> {
    return this.#engine.lead(name, work);
  }

  async ping(): Promise<void> {
    await this.read((tx) => tx.operators.bootstrapTokenHash());
  }

  close(): Promise<void> {
    return this.#engine.close();
  }
}

/** Codes only: a driver's text may hold the connection's address and user. */
function unavailable(error: unknown): StoreUnavailableError {
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'no answer';
  return new StoreUnavailableError(`the database does not answer (${code})`);
}
