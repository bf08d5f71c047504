/**
 * The store over an SQL database: transactions, locks, audit rows and notices. An {@link Engine} holds what differs
 * between the databases.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Kysely, TransactionBuilder } from 'kysely';
import { exponentialWaitMs } from '../../protocol/retry-wait.ts';
import { type DatabaseFault, errorOf } from './database-fault.ts';
import {
  type ControlStore,
  type Lock,
  type Mutated,
  type Notice,
  type ReportIncident,
  StoreUnavailableError,
  UnknownSiteError,
} from './port.ts';
import type { Database, Tables } from './repositories/tables.ts';
import { NO_LOCKS, openTransaction, type Transaction } from './transaction.ts';

/** Database-specific operations. */
export interface Engine {
  readonly db: Kysely<Tables>;
  /** For reads: the same as `db` where those do not wait for writes. */
  readonly reader: Kysely<Tables>;
  /** For reads that may take long; they use none of the connections above. */
  readonly aside: readonly Kysely<Tables>[];
  /** Waits for the lock. @returns whether the site exists */
  lock(db: Database, lock: Lock): Promise<boolean>;
  /** Called inside the transaction: other instances receive the notices when it commits. */
  announce(db: Database, notices: readonly Notice[]): Promise<void>;
  /** Receives notices of other instances. Resolves when it listens, or when the first attempt failed. @returns how to stop */
  listen(listener: (notice: Notice) => void): Promise<() => Promise<void>>;
  lead(name: string, work: (signal: AbortSignal) => Promise<void>): () => Promise<void>;
  /** Undefined for an error that is not the database's. */
  faultOf(error: unknown): DatabaseFault | undefined;
  close(): Promise<void>;
}

interface Committed<T> {
  readonly result: T;
  readonly notices: readonly Notice[];
}

const MAX_ATTEMPTS = 5;
/** Pauses before each attempt except the first. */
const PAUSES = { firstMs: 15, maxMs: 120 };

export class RelationalStore implements ControlStore {
  readonly #engine: Engine;
  readonly #nowMs: () => number;
  readonly #report: ReportIncident;
  readonly #listeners = new Set<(notice: Notice) => void>();
  readonly #leads = new Set<() => Promise<void>>();
  readonly #underWay = new Set<Promise<unknown>>();
  readonly #turns = new Turns();
  readonly #aside: Lanes;
  #stopListening = async () => {};
  #closing: Promise<void> | undefined;
  #isClosed = false;

  private constructor(engine: Engine, nowMs: () => number, report: ReportIncident) {
    this.#engine = engine;
    this.#aside = new Lanes(engine.aside);
    this.#nowMs = nowMs;
    this.#report = report;
  }

  static async open(engine: Engine, nowMs: () => number, report: ReportIncident): Promise<RelationalStore> {
    const store = new RelationalStore(engine, nowMs, report);
    store.#stopListening = await engine.listen((notice) => store.#tell(notice));
    return store;
  }

  async read<T>(work: (tx: Transaction) => Promise<T>): Promise<T> {
    const { result } = await this.#track(() =>
      this.#transact(this.#reading(this.#engine.reader), undefined, work),
    );
    return result;
  }

  async readAside<T>(work: (tx: Transaction) => Promise<T>): Promise<T> {
    const { result } = await this.#track(() =>
      this.#aside.run((db) => this.#transact(this.#reading(db), undefined, work)),
    );
    return result;
  }

  async mutate<T>(lock: Lock, work: (tx: Transaction) => Promise<Mutated<T>>): Promise<T> {
    return this.#write(lock, async (tx) => {
      const { result, audit } = await work(tx);
      await tx.audit.appendAll(audit, this.#nowMs());
      return result;
    });
  }

  writeUnaudited<T>(lock: Lock | undefined, work: (tx: Transaction) => Promise<T>): Promise<T> {
    return this.#write(lock, work);
  }

  async #write<T>(lock: Lock | undefined, work: (tx: Transaction) => Promise<T>): Promise<T> {
    const once = () => this.#transact(this.#writing(), lock, work);
    // Queue mutations of a site before they take a connection, so that waiting ones do not exhaust the pool.
    const { result, notices } = await this.#track(() =>
      lock === undefined || lock.kind === 'encrypting'
        ? once()
        : this.#turns.take(lock.kind === 'site' ? lock.siteId : '', once),
    );
    for (const notice of notices) this.#tell(notice);
    return result;
  }

  async #track<T>(run: () => Promise<T>): Promise<T> {
    if (this.#isClosed) throw new StoreUnavailableError('the store is closed');
    const running = run();
    this.#underWay.add(running);
    try {
      return await running;
    } finally {
      this.#underWay.delete(running);
    }
  }

  async #transact<T>(
    begin: TransactionBuilder<Tables>,
    lock: Lock | undefined,
    work: (tx: Transaction) => Promise<T>,
  ): Promise<Committed<T>> {
    for (let attempt = 1; ; attempt++) {
      let isCommitting = false;
      try {
        return await begin.execute(async (db) => {
          const done = await this.#inside(db, lock, work);
          isCommitting = true;
          return done;
        });
      } catch (error) {
        const fault = this.#engine.faultOf(error);
        if (fault === undefined) throw error;
        // A connection that broke before the commit was sent has committed nothing.
        const mayRepeat = fault.kind === 'repeat' || (fault.kind === 'connection_lost' && !isCommitting);
        if (!mayRepeat || attempt >= MAX_ATTEMPTS) throw errorOf(fault);
        await delay(exponentialWaitMs(attempt, PAUSES));
      }
    }
  }

  /** Reads use one snapshot. */
  #reading(db: Kysely<Tables>): TransactionBuilder<Tables> {
    return db.transaction().setIsolationLevel('repeatable read').setAccessMode('read only');
  }

  /** Writes must see what was committed while they waited for the lock. */
  #writing(): TransactionBuilder<Tables> {
    return this.#engine.db.transaction().setIsolationLevel('read committed').setAccessMode('read write');
  }

  async #inside<T>(
    db: Database,
    lock: Lock | undefined,
    work: (tx: Transaction) => Promise<T>,
  ): Promise<Committed<T>> {
    if (lock !== undefined && !(await this.#engine.lock(db, lock))) {
      throw new UnknownSiteError('there is no such site');
    }
    const held = new Set(lock?.kind === 'site' ? [lock.siteId] : []);
    const tx = openTransaction(db, {
      holdSite: async (siteId) => {
        if (!held.has(siteId)) await this.#engine.lock(db, { kind: 'site', siteId });
        held.add(siteId);
      },
      holdOrigins: async () => void (await this.#engine.lock(db, { kind: 'origins' })),
    });
    const result = await work(tx);
    await tx.changes.flush();
    await this.#engine.announce(db, tx.notices);
    return { result, notices: tx.notices };
  }

  subscribe(listener: (notice: Notice) => void): () => void {
    const own = (notice: Notice) => listener(notice);
    this.#listeners.add(own);
    return () => void this.#listeners.delete(own);
  }

  /** A listener's error does not fail the mutation. */
  #tell(notice: Notice): void {
    for (const listener of this.#listeners) {
      try {
        listener(notice);
      } catch (error) {
        this.#report({ kind: 'listener_failed', name: '', error });
      }
    }
  }

  lead(name: string, work: (signal: AbortSignal) => Promise<void>): () => Promise<void> {
    if (this.#closing !== undefined) throw new StoreUnavailableError('the store is closed');
    const stop = this.#engine.lead(name, work);
    this.#leads.add(stop);
    return async () => {
      this.#leads.delete(stop);
      await stop();
    };
  }

  async ping(): Promise<void> {
    await this.read((tx) => tx.operators.bootstrapTokenHash());
  }

  async tryWrite(): Promise<void> {
    const stateHash = `write-check-${randomUUID()}`;
    await this.writeUnaudited(undefined, async (tx) => {
      await tx.operators.addSignIn({ stateHash, sealed: '', expiresAtMs: 0 });
      await tx.operators.takeSignIn(stateHash);
    });
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    // Leaders may still write before new transactions are rejected.
    await Promise.all([...this.#leads].map((stop) => stop()));
    this.#isClosed = true;
    await Promise.allSettled(this.#underWay);
    this.#listeners.clear();
    await this.#stopListening();
    await this.#engine.close();
  }
}

/** Maximum wait for a turn: longer than any transaction that is not stuck. */
const PATIENCE_MS = 30_000;

/** FIFO queues by name. Queues of different names do not wait for each other. */
class Turns {
  /** Resolves when the last entry of the queue has ended; never rejects. */
  readonly #ends = new Map<string, Promise<void>>();
  readonly #patienceMs: number;

  constructor(patienceMs = PATIENCE_MS) {
    this.#patienceMs = patienceMs;
  }

  /** @throws StoreUnavailableError when the turn does not come in time (`run` is then not called); whatever `run` throws */
  take<T>(name: string, run: () => Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      let gaveUp = false;
      const timer = setTimeout(() => {
        gaveUp = true;
        reject(new StoreUnavailableError('the database is busy'));
      }, this.#patienceMs);
      const before = this.#ends.get(name) ?? Promise.resolve();
      const end = before.then(async () => {
        clearTimeout(timer);
        if (!gaveUp) await run().then(resolve, reject);
      });
      this.#ends.set(name, end);
      void end.then(() => {
        if (this.#ends.get(name) === end) this.#ends.delete(name);
      });
    });
  }
}

/** A store for reads of another thread, each on one snapshot. */
export interface SnapshotStore {
  /** @throws StoreUnavailableError, StoreFaultError, and whatever `work` throws */
  read<T>(work: (tx: Transaction) => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

export function snapshotsOf(db: Kysely<Tables>, faultOf: Engine['faultOf']): SnapshotStore {
  return {
    async read(work) {
      try {
        const reading = db.transaction().setIsolationLevel('repeatable read').setAccessMode('read only');
        return await reading.execute((tx) => work(openTransaction(tx, NO_LOCKS)));
      } catch (error) {
        const fault = faultOf(error);
        throw fault === undefined ? error : errorOf(fault);
      }
    },
    close: () => db.destroy(),
  };
}

/** Runs work on the least loaded of the databases. Each queues work that exceeds its connections. */
class Lanes {
  readonly #lanes: readonly { readonly db: Kysely<Tables>; running: number }[];

  constructor(databases: readonly Kysely<Tables>[]) {
    this.#lanes = databases.map((db) => ({ db, running: 0 }));
  }

  async run<T>(work: (db: Kysely<Tables>) => Promise<T>): Promise<T> {
    const lane = this.#lanes.reduce((least, each) => (each.running < least.running ? each : least));
    lane.running += 1;
    try {
      return await work(lane.db);
    } finally {
      lane.running -= 1;
    }
  }
}
