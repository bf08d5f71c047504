/** Compares a declaration with Control's configuration, member by member. */

import { isJsonObject, type JsonObject } from '../../protocol/strict-json.ts';
import type { DeclaredSource } from '../contract/declaration-contract.ts';
import type { RowOf } from '../store/repositories/records.ts';

export interface Difference {
  readonly field: string;
  /** Undefined when absent. */
  readonly from: unknown;
  readonly to: unknown;
}

/**
 * The members that differ.
 * @param mode with `exact`, a member that the declaration omits differs when Control has a value: a restriction that was
 *   removed must be removed
 */
export function differences(
  declared: JsonObject,
  current: JsonObject,
  fields: readonly string[],
  mode: 'declared' | 'exact',
): readonly Difference[] {
  return fields
    .filter((field) => mode === 'exact' || declared[field] !== undefined)
    .map((field) => ({ field, from: current[field], to: declared[field] }))
    .filter(({ from, to }) => !isEqual(from, to));
}

/** Members whose change needs a new revision of a source. */
export const COORDINATES = ['issuer', 'jwks_uri', 'audience', 'discovery'] as const;

export function coordinateChanges(
  source: DeclaredSource,
  { issuer, jwksUri: jwks_uri, audience, discovery }: RowOf<'sourceRevision'>,
): readonly Difference[] {
  return differences(source, { issuer, jwks_uri, audience, discovery }, COORDINATES, 'declared');
}

/** Whether two JSON values are equal. The order of members does not matter; null counts as absent. */
export function isEqual(one: unknown, other: unknown): boolean {
  return one === other || canonicalText(one) === canonicalText(other);
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
export function describe({ field, from, to }: Difference): string {
  return `${field}: ${show(from)} -> ${show(to)}`;
}

function show(value: unknown): string {
  return value === undefined || value === null ? '(none)' : JSON.stringify(value);
}

export function pick<T extends object, F extends keyof T>(from: T, fields: readonly F[]): Pick<T, F> {
  return Object.fromEntries(
    fields.filter((field) => from[field] !== undefined).map((field) => [field, from[field]]),
  ) as Pick<T, F>;
}
