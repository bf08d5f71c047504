/** Adds columns for a target's unpublished position and for the total by which it has raised its site's revision. */
import { type Kysely, sql } from 'kysely';

const COLUMNS = [
  'ahead_revision bigint',
  'ahead_since_ms bigint',
  'raised_revisions bigint not null default 0',
];

export const aheadTargets = {
  async up(db: Kysely<unknown>): Promise<void> {
    for (const column of COLUMNS) await sql.raw(`alter table target add column ${column}`).execute(db);
  },
};
