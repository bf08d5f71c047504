import { describe, expect, it } from '@jest/globals';
import {
  MOST_RETRY_AFTER_MS,
  parseRetryAfter,
  RetryDelay,
} from '../../../src/verifier/loading/refresh/retry-delay.ts';

describe('waits after failures', () => {
  it('double up to a limit, cut by up to half at random, and begin anew after a success', () => {
    const longest = new RetryDelay({ firstMs: 100, mostMs: 350, random: () => 0 });
    expect([1, 2, 3, 4].map(() => longest.failed())).toEqual([100, 200, 350, 350]);
    longest.reset();
    expect(longest.failed()).toBe(100);
    const shortest = new RetryDelay({ firstMs: 100, mostMs: 350, random: () => 1 });
    expect([1, 2, 3].map(() => shortest.failed())).toEqual([50, 100, 175]);
  });

  it('are not shorter than what was asked for, within reason', () => {
    const delay = new RetryDelay({ firstMs: 100, mostMs: 350, random: () => 0 });
    expect(delay.failed(5000)).toBe(5000);
    expect(delay.failed(1)).toBe(200);
    expect(delay.failed(1e12)).toBe(MOST_RETRY_AFTER_MS);
  });
});

describe('Retry-After', () => {
  const nowMs = Date.UTC(2026, 10, 21, 4, 0, 0);
  it.each([
    ['7', 7000],
    ['0', 0],
    ['Sat, 21 Nov 2026 04:00:30 GMT', 30_000],
    ['Sat, 21 Nov 2026 03:00:00 GMT', 0],
    [undefined, undefined],
    ['', undefined],
    ['-1', undefined],
    ['1.5', undefined],
    ['2026', 2_026_000],
    ['soon', undefined],
    ['9999999999', undefined],
  ])('%s', (value, expected) => {
    expect(parseRetryAfter(value, nowMs)).toBe(expected);
  });
});
