/**
 * The store on embedded SQLite: one file in the data directory, for one Control process. Every commit is on disk before
 * it is confirmed (WAL with `synchronous=FULL`), so a killed process loses nothing that it acknowledged.
 */
import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import {
  CamelCasePlugin,
  CompiledQuery,
  type DatabaseConnection,
  Kysely,
  SqliteDialect,
  SqliteDriver,
  type TransactionSettings,
} from 'kysely';
import LibsqlDatabase from 'libsql';
import { codeOf, type DatabaseFault, isError } from './database-fault.ts';
import { keepTrying, leadOnce } from './keep-trying.ts';
import { migrate } from './migrate.ts';
import { type ControlStore, type ReportIncident, SchemaNewerError, StoreUnavailableError } from './port.ts';
import { type Engine, RelationalStore } from './relational-store.ts';
import type { Tables } from './tables.ts';

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
  const database = openDatabase(join(dataDirectory, DATABASE_FILE));
  const db = new Kysely<Tables>({
    dialect: new LibsqlDialect(database),
    plugins: [new CamelCasePlugin()],
  });
  try {
    await migrate(db, { text: 'text', bytes: 'blob', sequence: 'integer primary key autoincrement' });
  } catch (error) {
    await db.destroy();
    throw error instanceof SchemaNewerError ? error : cannotOpen(error);
  }
  return RelationalStore.open(sqliteEngine(db, report), nowMs, report);
}

const PRAGMAS = [
  // The first write takes a lock that only this process can release. Otherwise two Controls on one file could both believe
  // to hold a site's lock.
  'locking_mode = exclusive',
  'journal_mode = wal',
  'synchronous = full',
  'foreign_keys = on',
];

function openDatabase(path: string) {
  try {
    // The file holds token hashes and sealed keys, so only its owner may read it. The journal inherits the mode.
    closeSync(openSync(path, 'a', 0o600));
    const database = new LibsqlDatabase(path);
    for (const pragma of PRAGMAS) database.pragma(pragma);
    database.exec('begin exclusive; commit');
    return database;
  } catch (error) {
    throw cannotOpen(error);
  }
}

function cannotOpen(error: unknown): StoreUnavailableError {
  const code = codeOf(error) || 'error';
  const why = code.startsWith('SQLITE_BUSY') ? 'another process uses it' : code;
  return new StoreUnavailableError(`${DATABASE_FILE} cannot be opened: ${why}`);
}

const LEAD_PAUSE_MS = 500;

/** One connection runs one transaction at a time, so no other locks are needed. One process always leads. */
function sqliteEngine(db: Kysely<Tables>, report: ReportIncident): Engine {
  return {
    db,
    async lock(tx, lock) {
      if (lock.kind !== 'site') return true;
      const row = await tx.selectFrom('site').select('id').where('id', '=', lock.siteId).executeTakeFirst();
      return row !== undefined;
    },
    async announce() {},
    listen: async () => async () => {},
    lead: (name, work) => keepTrying(LEAD_PAUSE_MS, (stop) => leadOnce(name, work, stop, report)),
    faultOf,
    close: () => db.destroy(),
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

/** Kysely's SQLite dialect over one open connection, with enforced read-only transactions. */
class LibsqlDialect extends SqliteDialect {
  readonly #database: Libsql;

  constructor(database: Libsql) {
    super({ database });
    this.#database = database;
  }

  override createDriver(): LibsqlDriver {
    return new LibsqlDriver(this.#database);
  }
}

class LibsqlDriver extends SqliteDriver {
  readonly #database: Libsql;

  constructor(database: Libsql) {
    super({ database });
    this.#database = database;
  }

  override async beginTransaction(
    connection: DatabaseConnection,
    settings?: TransactionSettings,
  ): Promise<void> {
    const isReadOnly = settings?.accessMode === 'read only';
    await connection.executeQuery(CompiledQuery.raw(`pragma query_only = ${isReadOnly ? 'on' : 'off'}`));
    await super.beginTransaction(connection);
  }

  override async rollbackTransaction(connection: DatabaseConnection): Promise<void> {
    // Errors such as a full disk end the transaction by themselves; another rollback would hide them.
    if (this.#database.inTransaction) await super.rollbackTransaction(connection);
  }

  override async destroy(): Promise<void> {
    // The library closes the file only when its statements are garbage-collected. Leaving WAL mode and the exclusive lock,
    // which WAL mode does not release, frees the file now.
    try {
      for (const pragma of ['journal_mode = delete', 'locking_mode = normal']) this.#database.pragma(pragma);
      this.#database.prepare('select count(*) from sqlite_schema').all([]);
    } finally {
      await super.destroy();
    }
  }
}
