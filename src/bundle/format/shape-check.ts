/**
 * Validates a value against a JSON Schema. Imports only the checking half of TypeBox: the half that builds schemas
 * would take as much again of a verifier's load time and memory. Source: docs/performance.md "What idle programs take".
 */
import type { TLocalizedValidationError } from 'typebox/error';
import { Compile } from 'typebox/schema';

export type ShapeError = TLocalizedValidationError;

export interface ShapeCheck<T> {
  readonly holds: (value: unknown) => value is T;
  /** Why the value is invalid. */
  readonly errors: (value: unknown) => readonly ShapeError[];
}

/** @typeParam T the type that the schema describes; test/bundle/format/published.test.ts compares the schema with the one that T comes from */
export function shapeCheck<T>(schema: object): ShapeCheck<T> {
  const validator = Compile(schema);
  return {
    holds: (value): value is T => validator.Check(value),
    errors: (value) => validator.Errors(value)[1],
  };
}
