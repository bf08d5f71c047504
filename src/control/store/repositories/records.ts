/** Repositories' common ground: rows as records, pages, and updates that lose nothing. */
import type { Selectable } from 'kysely';
import type { Tables } from '../tables.ts';

/** A row of a table, as read. */
export type RowOf<T extends keyof Tables> = Readonly<Selectable<Tables[T]>>;

/** A part of a list: at most `limit` records that come after `after`, in the order of their names. */
export interface Page {
  readonly after: string | undefined;
  readonly limit: number;
}

/** Somebody else changed the record since it was read, or it is gone. */
export class VersionConflictError extends Error {
  override readonly name = 'VersionConflictError';
}

/** What an update must find: exactly one row of that version. @throws VersionConflictError */
export function expectUpdated(result: { readonly numUpdatedRows: bigint }): void {
  if (result.numUpdatedRows !== 1n) throw new VersionConflictError('the record was changed meanwhile');
}
