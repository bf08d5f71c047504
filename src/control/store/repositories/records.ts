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

/** How many names one statement may list: databases bound the parameters of a statement. */
const NAMES_A_STATEMENT = 500;

/** A list in parts of {@link NAMES_A_STATEMENT} at most. */
export function* inParts<T>(list: readonly T[]): Generator<T[]> {
  for (let start = 0; start < list.length; start += NAMES_A_STATEMENT) {
    yield list.slice(start, start + NAMES_A_STATEMENT);
  }
}

/** How many rows one call prunes at most: whoever prunes calls until fewer were removed, and lets others in between. */
export const PRUNED_AT_ONCE = 1000;
