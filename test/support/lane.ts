/**
 * The lane of the running test file. `make test-extended` runs the files named `*.extended.test.ts`, `make test` all others.
 * A suite that both lanes run stands in `x.test.ts`; `x.extended.test.ts` imports it and runs what this file selects.
 */
import { expect } from '@jest/globals';

export const IS_EXTENDED = expect.getState().testPath?.endsWith('.extended.test.ts') ?? false;

/** @returns the value for the running lane */
export function byLane<T>(values: { readonly fast: T; readonly extended: T }): T {
  return IS_EXTENDED ? values.extended : values.fast;
}
