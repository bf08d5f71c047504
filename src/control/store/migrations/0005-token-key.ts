/** Adds a column for the issuer key that signed an enrollment's token, so that approval can check that it is still valid. */
import { type Kysely, sql } from 'kysely';
import type { Dialect } from './0001-first.ts';

export function tokenKey({ text }: Pick<Dialect, 'text'>) {
  return {
    async up(db: Kysely<unknown>): Promise<void> {
      await sql.raw(`alter table enrollment add column token_key_thumbprint ${text}`).execute(db);
    },
  };
}
