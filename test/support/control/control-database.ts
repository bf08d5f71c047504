/**
 * Reads Control's database from outside. For SQLite it reads a copy of the files, because only Control may open the originals.
 */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import LibsqlDatabase from 'libsql';
import { DATABASE_FILE } from '../../../src/control/store/sqlite.ts';
import type { TestPostgresServer } from '../harness/postgres-server.ts';

const run = promisify(execFile);

export type DatabaseRow = Readonly<Record<string, unknown>>;

export interface ControlDatabase {
  /** Read at one moment. @param texts of one query each */
  query<N extends string>(texts: Readonly<Record<N, string>>): Promise<Record<N, readonly DatabaseRow[]>>;
}

/** Reads the database of a stopped Control, because a running one writes while its files are copied. */
export function sqliteDatabase(dataDirectory: string): ControlDatabase {
  return {
    async query(texts) {
      const copy = await mkdtemp(join(tmpdir(), 'pg-database-'));
      try {
        // A store that this process closed may still write its log into the database, and remove the log: its last statement
        // may not be collected yet. So the log goes first, and one that is gone is in the database.
        // Its index holds nothing that the log does not.
        await copyFile(join(dataDirectory, `${DATABASE_FILE}-wal`), copy, 'may be missing');
        await copyFile(join(dataDirectory, DATABASE_FILE), copy);
        const database = new LibsqlDatabase(join(copy, DATABASE_FILE));
        try {
          return mapped(texts, (text) => database.prepare(text).all([]) as DatabaseRow[]);
        } finally {
          database.close();
        }
      } finally {
        await rm(copy, { recursive: true });
      }
    },
  };
}

/** In a process of its own: closing a file releases the locks that connections of this process have on it. */
async function copyFile(path: string, folder: string, missing?: 'may be missing'): Promise<void> {
  try {
    await run('cp', [path, folder]);
  } catch (error) {
    if (missing === undefined || existsSync(path)) throw error;
  }
}

export function postgresDatabase(server: TestPostgresServer, url: string): ControlDatabase {
  return {
    async query(texts) {
      const names = Object.keys(texts) as (keyof typeof texts)[];
      // One statement reads one consistent snapshot.
      const parts = names.map(
        (name) => `coalesce((select json_agg(q) from (${texts[name]}) q), '[]') as "${name}"`,
      );
      const [row] = await server.query(url, `select ${parts.join(', ')}`);
      return mapped(texts, (_, name) => row?.[name] ?? []);
    },
  };
}

function mapped<N extends string>(
  texts: Readonly<Record<N, string>>,
  read: (text: string, name: N) => readonly DatabaseRow[],
): Record<N, readonly DatabaseRow[]> {
  const entries = (Object.entries(texts) as [N, string][]).map(([name, text]) => [name, read(text, name)]);
  return Object.fromEntries(entries);
}
