/**
 * Embedded SQLite: one file in the data directory, for one Control process. Every commit is on disk before it is
 * answered (WAL with `synchronous=FULL`), so a killed process loses nothing that it acknowledged.
 */
import { join } from 'node:path';
import { CamelCasePlugin, Kysely, SqliteDialect } from 'kysely';
import LibsqlDatabase from 'libsql';
import { migrate } from './migrate.ts';
import { type ControlStore, StoreUnavailableError } from './port.ts';
import { type Engine, RelationalStore } from './relational-store.ts';
import type { Tables } from './tables.ts';

export const DATABASE_FILE = 'control.sqlite';

export interface SqliteOptions {
  /** Must exist. */
  readonly dataDirectory: string;
  readonly nowMs: () => number;
}

/** @throws StoreUnavailableError when the file cannot be opened, or another process has it */
export async function openSqliteStore({ dataDirectory, nowMs }: SqliteOptions): Promise<ControlStore> {
  const database = openDatabase(join(dataDirectory, DATABASE_FILE));
  const db = new Kysely<Tables>({
    dialect: new SqliteDialect({ database }),
    plugins: [new CamelCasePlugin()],
  });
  try {
    await migrate(db, { bytes: 'blob', sequence: 'integer primary key autoincrement' });
  } catch (error) {
    await db.destroy();
    throw cannotOpen(error);
  }
  return new RelationalStore(sqliteEngine(db), nowMs);
}

function openDatabase(path: string) {
  try {
    const database = new LibsqlDatabase(path);
    // The first write takes a lock that only this process gets back: two Controls on one file would each think that
    // they hold a site's lock.
    for (const pragma of [
      'locking_mode = exclusive',
      'journal_mode = wal',
      'synchronous = full',
      'foreign_keys = on',
    ]) {
      database.pragma(pragma);
    }
    database.exec('begin exclusive; commit');
    return database;
  } catch (error) {
    throw cannotOpen(error);
  }
}

function cannotOpen(error: unknown): StoreUnavailableError {
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'error';
  const why = code === 'SQLITE_BUSY' ? 'another process uses it' : code;
  return new StoreUnavailableError(`${DATABASE_FILE} cannot be opened: ${why}`);
}

/** One connection, used by one transaction at a time: that is every lock there is. */
function sqliteEngine(db: Kysely<Tables>): Engine {
  return {
    db,
    async lock(tx, lock) {
      if (lock.kind === 'installation') return true;
      const row = await tx.selectFrom('site').select('id').where('id', '=', lock.siteId).executeTakeFirst();
      return row !== undefined;
    },
    async announce() {},
    listen() {},
    lead(_name, work) {
      const stop = new AbortController();
      const ended = work(stop.signal);
      return async () => {
        stop.abort();
        await ended;
      };
    },
    isTransient: () => false,
    isUnavailable: (error) =>
      error instanceof Error &&
      'code' in error &&
      /^SQLITE_(BUSY|IOERR|FULL|CANTOPEN)/.test(String(error.code)),
    close: () => db.destroy(),
  };
}
