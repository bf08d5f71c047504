/** What differs between a declaration and what Control holds, field by field. */
import { isDeepStrictEqual } from 'node:util';
import { isJsonObject, type JsonObject } from '../../protocol/strict-json.ts';

export interface FieldDifference {
  readonly field: string;
  /** Undefined: not there. */
  readonly from: unknown;
  readonly to: unknown;
}

/**
 * Fields of the declaration that Control holds otherwise.
 * @param fields which fields count. One that the declaration leaves out counts when Control holds something there, but
 *   only for `exact`: a restriction that was taken out of the file must go
 */
export function differences(
  declared: JsonObject,
  current: JsonObject,
  fields: readonly string[],
  mode: 'declared' | 'exact',
): readonly FieldDifference[] {
  return fields
    .filter((field) => mode === 'exact' || declared[field] !== undefined)
    .map((field) => ({ field, from: current[field], to: declared[field] }))
    .filter(({ from, to }) => !isDeepStrictEqual(plain(from), plain(to)));
}

/** Null, and members without a value, are what is not there. */
function plain(value: unknown): unknown {
  if (value === null) return undefined;
  if (Array.isArray(value)) return value.map(plain);
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value)
      .map(([name, member]) => [name, plain(member)])
      .filter(([, member]) => member !== undefined),
  );
}

/** One line for people: `skew_seconds: 5 -> 10`. */
export function describeDifference({ field, from, to }: FieldDifference): string {
  return `${field}: ${show(from)} -> ${show(to)}`;
}

function show(value: unknown): string {
  return value === undefined || value === null ? '(none)' : JSON.stringify(value);
}
