/** Remembers which of the issuer's keys signed the token of an enrollment, so that approval can ask whether it is still one. */
import { type Kysely, sql } from 'kysely';
import type { Dialect } from './0001-first.ts';

export function tokenKey({ text }: Pick<Dialect, 'text'>) {
  return {
    async up(db: Kysely<unknown>): Promise<void> {
      await sql.raw(`alter table enrollment add column token_key_thumbprint ${text}`).execute(db);
    },
  };
}
