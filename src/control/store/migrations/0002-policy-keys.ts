/** Adds an index that finds the last key of a policy without reading its others. */
import { type Kysely, sql } from 'kysely';

export const policyKeys = {
  async up(db: Kysely<unknown>): Promise<void> {
    await sql
      .raw('create index derived_key_policy on derived_key (policy_id, status, expires_at_seconds)')
      .execute(db);
  },
};
