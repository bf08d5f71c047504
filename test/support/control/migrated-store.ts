/** Gives stores copies of one migrated database, because migrating one takes longer than most tests. */
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import LibsqlDatabase from 'libsql';
import type { ControlStore } from '../../../src/control/store/port.ts';
import { openPostgresStore } from '../../../src/control/store/postgres.ts';
import { DATABASE_FILE, openSqliteStore, type SqliteOptions } from '../../../src/control/store/sqlite.ts';
import type { TestPostgresServer } from '../harness/postgres-server.ts';

let migrated: Promise<Buffer> | undefined;

/** Like `openSqliteStore`. A directory without a database gets a migrated one first. */
export async function openMigratedStore(options: SqliteOptions): Promise<ControlStore> {
  const path = join(options.dataDirectory, DATABASE_FILE);
  if (!existsSync(path)) {
    migrated ??= migratedDatabase();
    await writeFile(path, await migrated, { mode: 0o600 });
  }
  return openSqliteStore(options);
}

async function migratedDatabase(): Promise<Buffer> {
  const folder = await mkdtemp(join(tmpdir(), 'proofgate-migrated-'));
  await (await openSqliteStore({ dataDirectory: folder, nowMs: Date.now })).close();
  // A closed connection may write the log back into its file later, when its statements are collected.
  const database = new LibsqlDatabase(join(folder, DATABASE_FILE));
  const copy = join(folder, 'copy.sqlite');
  database.exec(`vacuum into '${copy}'`);
  database.close();
  const bytes = await readFile(copy);
  await rm(folder, { recursive: true });
  return bytes;
}

const templates = new WeakMap<TestPostgresServer, Promise<string>>();

/** @returns the URL of a new database of the server, migrated and without rows */
export async function createMigratedDatabase(server: TestPostgresServer): Promise<string> {
  const template = templates.get(server) ?? migratedTemplate(server);
  templates.set(server, template);
  return server.createDatabase(await template);
}

/** @returns its URL; without a connection, as PostgreSQL asks of a template */
async function migratedTemplate(server: TestPostgresServer): Promise<string> {
  const url = await server.createDatabase();
  await (await openPostgresStore({ url, nowMs: Date.now })).close();
  return url;
}
