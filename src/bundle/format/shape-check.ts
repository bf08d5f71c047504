/**
 * Holds a value against a JSON Schema. Of TypeBox only what checks: what it builds schemas with is as much again, for a verifier to
 * load and to keep. Source: docs/performance.md "What idle programs take".
 */
import type { TLocalizedValidationError } from 'typebox/error';
import { Compile, type XSchema } from 'typebox/schema';

export type ShapeError = TLocalizedValidationError;

export interface ShapeCheck<T> {
  readonly holds: (value: unknown) => value is T;
  /** Why it does not. */
  readonly errors: (value: unknown) => readonly ShapeError[];
}

/** @typeParam T what the schema describes, which `schemas.generated.ts` vouches for */
export function shapeCheck<T>(schema: XSchema): ShapeCheck<T> {
  const validator = Compile(schema);
  return {
    holds: (value): value is T => validator.Check(value),
    errors: (value) => validator.Errors(value)[1],
  };
}
