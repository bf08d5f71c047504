/** What differs between a declaration and what Control holds, field by field. */
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
    .filter(({ from, to }) => !isSame(from, to));
}

/** Whether two JSON values say the same. Members have no order; null, and members without a value, are what is not there. */
export function isSame(one: unknown, other: unknown): boolean {
  return canonicalText(one) === canonicalText(other);
}

function canonicalText(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalText).join(',')}]`;
  if (!isJsonObject(value)) return JSON.stringify(value ?? null);
  const members = Object.entries(value)
    .filter(([, member]) => member !== undefined && member !== null)
    .map(([name, member]) => `${JSON.stringify(name)}:${canonicalText(member)}`);
  return `{${members.sort().join(',')}}`;
}

/** One line for people: `skew_seconds: 5 -> 10`. */
export function describeDifference({ field, from, to }: FieldDifference): string {
  return `${field}: ${show(from)} -> ${show(to)}`;
}

function show(value: unknown): string {
  return value === undefined || value === null ? '(none)' : JSON.stringify(value);
}
