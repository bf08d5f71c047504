/** Types and limits that repositories share: rows, pages, limits of a statement. */
import type { Selectable } from 'kysely';
import type { Tables } from './tables.ts';

/** A row of a table, as read. */
export type RowOf<T extends keyof Tables> = Readonly<Selectable<Tables[T]>>;

/** A page of a list: at most `limit` records after `after`, in the order of their names. */
export interface Page {
  readonly after: string | undefined;
  readonly limit: number;
}

/** The record was changed or deleted since it was read. */
export class VersionConflictError extends Error {
  override readonly name = 'VersionConflictError';
}

/** Maximum number of names per statement: databases limit a statement's parameters. */
const NAMES_A_STATEMENT = 500;

/** Splits a list into parts of at most {@link NAMES_A_STATEMENT}. */
export function* inParts<T>(list: readonly T[]): Generator<T[]> {
  for (let start = 0; start < list.length; start += NAMES_A_STATEMENT) {
    yield list.slice(start, start + NAMES_A_STATEMENT);
  }
}

/** Maximum number of rows that one prune call removes. Callers repeat it until fewer rows were removed. */
export const PRUNED_AT_ONCE = 1000;
