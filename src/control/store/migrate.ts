import { DEFAULT_MIGRATION_TABLE, type Kysely, Migrator, sql } from 'kysely';
import { type Dialect, firstSchema } from './migrations/0001-first.ts';
import { policyKeys } from './migrations/0002-policy-keys.ts';
import { aheadTargets } from './migrations/0003-ahead-targets.ts';
import { siteUids } from './migrations/0004-site-uids.ts';
import { tokenKey } from './migrations/0005-token-key.ts';
import { SchemaNewerError } from './port.ts';
import type { Tables } from './tables.ts';

/**
 * Migrates a database to the newest schema. Concurrent instances take turns.
 * @throws SchemaNewerError, or the database's error; each migration is one transaction, so none is half done
 */
export async function migrate(db: Kysely<Tables>, dialect: Dialect): Promise<void> {
  const migrations = {
    '0001-first': firstSchema(dialect),
    '0002-policy-keys': policyKeys,
    '0003-ahead-targets': aheadTargets,
    '0004-site-uids': siteUids(dialect),
    '0005-token-key': tokenKey(dialect),
  };
  const migrator = new Migrator({ db, provider: { getMigrations: async () => migrations } });
  const { error } = await migrator.migrateToLatest();
  if (error === undefined) return;
  if (!isUnknownStep(error)) throw error;
  const newer = await lastStepBeyond(Object.keys(migrations), db).catch(() => undefined);
  throw newer === undefined ? error : new SchemaNewerError(newer);
}

/** Kysely's message when the database has migrations that are unknown here. */
function isUnknownStep(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('corrupted migrations');
}

/** The database's last migration that this version does not know. */
async function lastStepBeyond(known: readonly string[], db: Kysely<Tables>): Promise<string | undefined> {
  const { rows } = await sql<{
    readonly name: string;
  }>`select name from ${sql.table(DEFAULT_MIGRATION_TABLE)}`.execute(db);
  const beyond = rows.map(({ name }) => name).filter((name) => !known.includes(name));
  return beyond.toSorted().at(-1);
}
