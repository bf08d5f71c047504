/**
 * The store on embedded SQLite: one file in the data directory, for one Control process. Every commit is on disk before
 * it is confirmed (WAL with `synchronous=FULL`), so a killed process loses nothing that it acknowledged. One connection
 * writes. Reads use connections of their own, each on a snapshot, and never wait for a write.
 */
import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import {
  CamelCasePlugin,
  type CompiledQuery,
  type DatabaseConnection,
  Kysely,
  SqliteDialect,
  SqliteDriver,
} from 'kysely';
import LibsqlDatabase from 'libsql';
import { codeOf, type DatabaseFault, isError } from './database-fault.ts';
import { keepTrying, leadOnce } from './keep-trying.ts';
import { migrate } from './migrate.ts';
import { type ControlStore, type ReportIncident, SchemaNewerError, StoreUnavailableError } from './port.ts';
import { type Engine, RelationalStore, type SnapshotStore, snapshotsOf } from './relational-store.ts';
import type { Tables } from './repositories/tables.ts';

export const DATABASE_FILE = 'control.sqlite';

export interface SqliteOptions {
  /** Must exist. */
  readonly dataDirectory: string;
  readonly nowMs: () => number;
  readonly report?: ReportIncident;
}

/** @throws SchemaNewerError, or StoreUnavailableError when the file cannot be opened or another process uses it */
export async function openSqliteStore(options: SqliteOptions): Promise<ControlStore> {
  const { dataDirectory, nowMs, report = () => {} } = options;
  const path = join(dataDirectory, DATABASE_FILE);
  const { database, unlock } = openDatabase(path);
  const db = kyselyOf(new LibsqlDialect(database));
  try {
    await migrate(db, { text: 'text', bytes: 'blob', sequence: 'integer primary key autoincrement' });
  } catch (error) {
    await db.destroy();
    unlock();
    throw error instanceof SchemaNewerError ? error : cannotOpen(error);
  }
  const reader = kyselyOf(new LibsqlDialect(openReader(path)));
  const aside = Array.from({ length: READERS_ASIDE }, () => openReaderAside(path));
  const close = async () => {
    for (const each of [reader, ...aside, db]) await each.destroy();
    unlock();
  };
  return RelationalStore.open(sqliteEngine({ db, reader, aside, close }, report), nowMs, report);
}

/** Connections for reads that may take long. More would only share the same processor. */
const READERS_ASIDE = 2;

function kyselyOf(dialect: LibsqlDialect): Kysely<Tables> {
  return new Kysely<Tables>({ dialect, plugins: [new CamelCasePlugin()] });
}

/** Reads beside an open store of the same directory. */
export function openSqliteSnapshots(dataDirectory: string): SnapshotStore {
  return snapshotsOf(kyselyOf(new LibsqlDialect(openReader(join(dataDirectory, DATABASE_FILE)))), faultOf);
}

/** A connection that lets other work run before each statement. */
function openReaderAside(path: string): Kysely<Tables> {
  return kyselyOf(new LibsqlDialect(openReader(path), nextTurn));
}

const PRAGMAS = ['journal_mode = wal', 'synchronous = full', 'foreign_keys = on'];

function openDatabase(path: string): { readonly database: Libsql; readonly unlock: () => void } {
  try {
    const unlock = lockFile(`${path}-lock`);
    const database = openFile(path);
    for (const pragma of PRAGMAS) database.pragma(pragma);
    // Fails while a Control of 0.3.0 or before uses the file.
    database.exec('begin immediate; commit');
    return { database, unlock };
  } catch (error) {
    throw cannotOpen(error);
  }
}

function openReader(path: string): Libsql {
  const database = openFile(path);
  database.pragma('query_only = on');
  return database;
}

function openFile(path: string): Libsql {
  createOwnerOnly(path);
  return new LibsqlDatabase(path);
}

/**
 * The file holds token hashes and sealed keys, so only its owner may read it. Its journal inherits the mode. An
 * existing file must not be opened and closed here, because that would release the locks of every connection of this
 * process (https://www.sqlite.org/howtocorrupt.html section 2.2), and another process could remove the journal that
 * they use.
 */
function createOwnerOnly(path: string): void {
  try {
    closeSync(openSync(path, 'wx', 0o600));
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error;
  }
}

/**
 * An empty database whose lock this process holds until it ends. Otherwise two Controls on one file could both assume
 * that they hold a site's lock. An exclusive lock of the file itself would exclude our own readers.
 * @returns a function that releases it
 */
function lockFile(path: string): () => void {
  const database = openFile(path);
  database.exec('begin exclusive');
  return () => {
    database.exec('rollback');
    database.close();
  };
}

function cannotOpen(error: unknown): StoreUnavailableError {
  const code = codeOf(error) || 'error';
  const why = code.startsWith('SQLITE_BUSY') ? 'another process uses it' : code;
  return new StoreUnavailableError(`${DATABASE_FILE} cannot be opened: ${why}`);
}

const LEAD_PAUSE_MS = 500;

/** One connection writes, one transaction at a time, so no other locks are needed. One process always leads. */
function sqliteEngine(
  databases: Pick<Engine, 'db' | 'reader' | 'aside' | 'close'>,
  report: ReportIncident,
): Engine {
  return {
    ...databases,
    async lock(tx, lock) {
      if (lock.kind !== 'site') return true;
      const row = await tx.selectFrom('site').select('id').where('id', '=', lock.siteId).executeTakeFirst();
      return row !== undefined;
    },
    async announce() {},
    listen: async () => async () => {},
    lead: (name, work) => keepTrying(LEAD_PAUSE_MS, (stop) => leadOnce(name, work, stop, report)),
    faultOf,
  };
}

function faultOf(error: unknown): DatabaseFault | undefined {
  const code = codeOf(error);
  if (!isError(error) || !code.startsWith('SQLITE_')) return undefined;
  const name = /constraint failed: (.*)$/.exec(error.message)?.[1] ?? '';
  if (/^SQLITE_CONSTRAINT_(UNIQUE|PRIMARYKEY)$/.test(code)) {
    return { kind: 'constraint', constraint: 'unique', name };
  }
  if (code === 'SQLITE_CONSTRAINT_FOREIGNKEY') return { kind: 'constraint', constraint: 'reference', name };
  return /^SQLITE_(BUSY|IOERR|FULL|CANTOPEN|NOMEM)/.test(code)
    ? { kind: 'unavailable', code }
    : { kind: 'other', code, cause: error };
}

type Libsql = InstanceType<typeof LibsqlDatabase>;

/** Called before each statement. */
type BeforeStatement = () => Promise<unknown>;

/** Kysely's SQLite dialect over one open connection. */
class LibsqlDialect extends SqliteDialect {
  readonly #database: Libsql;
  readonly #before: BeforeStatement | undefined;

  constructor(database: Libsql, before?: BeforeStatement) {
    super({ database });
    this.#database = database;
    this.#before = before;
  }

  override createDriver(): LibsqlDriver {
    return new LibsqlDriver(this.#database, this.#before);
  }
}

class LibsqlDriver extends SqliteDriver {
  readonly #database: Libsql;
  readonly #before: BeforeStatement | undefined;

  constructor(database: Libsql, before: BeforeStatement | undefined) {
    super({ database });
    this.#database = database;
    this.#before = before;
  }

  override async acquireConnection(): Promise<DatabaseConnection> {
    const connection = await super.acquireConnection();
    const before = this.#before;
    if (before === undefined) return connection;
    return {
      async executeQuery<R>(query: CompiledQuery) {
        await before();
        return connection.executeQuery<R>(query);
      },
      streamQuery: <R>(query: CompiledQuery, size: number) => connection.streamQuery<R>(query, size),
    };
  }

  override async rollbackTransaction(connection: DatabaseConnection): Promise<void> {
    // Errors such as a full disk end the transaction by themselves; another rollback would hide them.
    if (this.#database.inTransaction) await super.rollbackTransaction(connection);
  }
}
