import { type Kysely, Migrator } from 'kysely';
import { type Dialect, firstSchema } from './migrations/0001-first.ts';
import { policyKeys } from './migrations/0002-policy-keys.ts';
import type { Tables } from './tables.ts';

/**
 * Brings a database to the newest schema. Instances that start together take turns.
 * @throws the database's error; nothing is half done, each migration is one transaction
 */
export async function migrate(db: Kysely<Tables>, dialect: Dialect): Promise<void> {
  const migrations = { '0001-first': firstSchema(dialect), '0002-policy-keys': policyKeys };
  const migrator = new Migrator({ db, provider: { getMigrations: async () => migrations } });
  const { error } = await migrator.migrateToLatest();
  if (error !== undefined) throw error;
}
