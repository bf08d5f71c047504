/** Compares a declaration with Control's configuration, field by field. */
import { isJsonObject, type JsonObject } from '../../protocol/strict-json.ts';

export interface FieldDifference {
  readonly field: string;
  /** Undefined when absent. */
  readonly from: unknown;
  readonly to: unknown;
}

/**
 * The fields that differ from Control's configuration.
 * @param fields the fields to compare. With `exact`, a field that the declaration omits differs when Control has a value:
 *   a restriction that was removed from the file must be removed
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

/** Whether two JSON values are equal. The order of members does not matter; null counts as absent. */
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

/** Formats a difference as one line: `skew_seconds: 5 -> 10`. */
export function describeDifference({ field, from, to }: FieldDifference): string {
  return `${field}: ${show(from)} -> ${show(to)}`;
}

function show(value: unknown): string {
  return value === undefined || value === null ? '(none)' : JSON.stringify(value);
}
