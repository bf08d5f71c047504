/** How long a client waits before it connects again. */
import { expect, it } from '@jest/globals';
import { reconnectDelayMs } from '../../../src/verifier/redis/client.ts';

it.each([
  [1, 5],
  [2, 10],
  [3, 20],
  [8, 640],
  [9, 1280],
  [10, 2000],
  [1000, 2000],
])(
  'before attempt %i it is more than half of %i ms, and at most that, and not always the same',
  (attempt, mostMs) => {
    const delaysMs = Array.from({ length: 200 }, () => reconnectDelayMs(attempt));
    expect(delaysMs.every((ms) => Number.isInteger(ms) && ms >= mostMs / 2 && ms <= mostMs)).toBe(true);
    expect(new Set(delaysMs).size).toBeGreaterThan(1);
    // Over the whole of that range.
    expect(Math.max(...delaysMs)).toBeGreaterThan(mostMs * 0.8);
    expect(Math.min(...delaysMs)).toBeLessThan(mostMs * 0.7);
  },
);
