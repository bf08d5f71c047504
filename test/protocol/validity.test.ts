/** Tests the bounds of a validity period, to the second. */
import { expect, it } from '@jest/globals';
import { hasEnded, hasStarted } from '../../src/protocol/validity.ts';

it('starts as much earlier as clocks may be apart', () => {
  expect(hasStarted(100, 94, 5)).toBe(false);
  expect(hasStarted(100, 95, 5)).toBe(true);
  expect(hasStarted(100, 99, 0)).toBe(false);
  expect(hasStarted(100, 100, 0)).toBe(true);
});

it('ends as much later as clocks may be apart', () => {
  expect(hasEnded(100, 104, 5)).toBe(false);
  expect(hasEnded(100, 105, 5)).toBe(true);
  expect(hasEnded(100, 99, 0)).toBe(false);
  expect(hasEnded(100, 100, 0)).toBe(true);
});

it('is not valid at a time that is not a number', () => {
  for (const [time, now, skew] of [
    [Number.NaN, 1, 1],
    [1, Number.NaN, 1],
    [1, 1, Number.NaN],
  ] as const) {
    expect(hasStarted(time, now, skew)).toBe(false);
    expect(hasEnded(time, now, skew)).toBe(true);
  }
});
