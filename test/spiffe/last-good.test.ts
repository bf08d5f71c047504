/** How long the last good bundles of a failing source stay. */
import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import { FailurePeriod, MAX_FAILURE_MS } from '../../src/spiffe/bundles/last-good.ts';

let withdrawn: number;
let period: FailurePeriod;
beforeEach(() => {
  jest.useFakeTimers();
  withdrawn = 0;
  period = new FailurePeriod(Date.now, () => {
    withdrawn += 1;
  });
});
afterEach(() => void jest.useRealTimers());

test('a day after the first failure they go, although the source hangs', () => {
  period.failed();
  jest.advanceTimersByTime(MAX_FAILURE_MS / 2);
  period.failed();
  jest.advanceTimersByTime(MAX_FAILURE_MS / 2 - 1);
  expect([withdrawn, period.isOver]).toEqual([0, false]);
  jest.advanceTimersByTime(1);
  expect([withdrawn, period.isOver]).toEqual([1, true]);
});

test('a success begins anew', () => {
  period.failed();
  period.succeeded();
  jest.advanceTimersByTime(2 * MAX_FAILURE_MS);
  expect([withdrawn, period.isOver]).toEqual([0, false]);
});

test('a clock without a value withdraws them', () => {
  const blind = new FailurePeriod(
    () => Number.NaN,
    () => {
      withdrawn += 1;
    },
  );
  blind.failed();
  expect(withdrawn).toBe(1);
  blind.succeeded();
});
