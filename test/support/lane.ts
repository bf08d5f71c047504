/**
 * A suite that takes long stands in two files: `x.test.ts` runs a part, and `x.extended.test.ts`, which imports it, the rest.
 * scripts/jest/fast-lane.mjs says which files `make test` runs.
 */
import { expect } from '@jest/globals';

export const IS_EXTENDED = expect.getState().testPath?.endsWith('.extended.test.ts') ?? false;

/** @returns the value for the running lane */
export function byLane<T>(values: { readonly fast: T; readonly extended: T }): T {
  return IS_EXTENDED ? values.extended : values.fast;
}
