/**
 * Validates a value against a JSON Schema. Imports only the checking half of TypeBox, because the half that builds
 * schemas would double a verifier's load time and memory. Source: docs/performance.md "What idle programs take".
 */
import type { TLocalizedValidationError } from 'typebox/error';
import { Compile, type XSchema } from 'typebox/schema';

export type ShapeError = TLocalizedValidationError;

export interface ShapeCheck<T> {
  readonly holds: (value: unknown) => value is T;
  /** Why the value is invalid. */
  readonly errors: (value: unknown) => readonly ShapeError[];
}

/** @typeParam T the type that the schema describes, as `schemas.generated.ts` pairs them */
export function shapeCheck<T>(schema: XSchema): ShapeCheck<T> {
  const validator = Compile(schema);
  return {
    holds: (value): value is T => validator.Check(value),
    errors: (value) => validator.Errors(value)[1],
  };
}
