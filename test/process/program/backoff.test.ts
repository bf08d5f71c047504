import { describe, expect, it } from '@jest/globals';
import { Backoff, MAX_RETRY_AFTER_MS, NO_JITTER } from '../../../src/process/program/backoff.ts';
import { parseRetryAfterMs } from '../../../src/protocol/retry-after.ts';
import { hostileRetryAfters } from '../../support/fixtures/retry-after-headers.ts';

describe('waits after failures', () => {
  it('double up to a limit, cut by up to half at random, and begin anew after a success', () => {
    const longest = new Backoff({ firstMs: 100, maxMs: 350, random: NO_JITTER });
    expect([1, 2, 3, 4].map(() => longest.failed())).toEqual([100, 200, 350, 350]);
    longest.reset();
    expect(longest.failed()).toBe(100);
    const shortest = new Backoff({ firstMs: 100, maxMs: 350, random: () => 1 });
    expect([1, 2, 3].map(() => shortest.failed())).toEqual([50, 100, 175]);
  });

  it('are not shorter than what was asked for, within reason', () => {
    const backoff = new Backoff({ firstMs: 100, maxMs: 350, random: NO_JITTER });
    expect(backoff.failed(5000)).toBe(5000);
    expect(backoff.failed(1)).toBe(200);
    expect(backoff.failed(1e12)).toBe(MAX_RETRY_AFTER_MS);
  });

  it.each(hostileRetryAfters())(
    'are at most 30 s after Retry-After: %s, as for a collector of audit events',
    (text) => {
      const backoff = new Backoff({ firstMs: 500, maxMs: 30_000 });
      expect(backoff.failed(parseRetryAfterMs(text, Date.now()))).toBeLessThanOrEqual(30_000);
    },
  );

  it('are over before the first failure, and after a reset', () => {
    const backoff = new Backoff({ firstMs: 60_000, maxMs: 60_000 });
    expect(backoff.isDue).toBe(true);
    backoff.failed();
    expect(backoff.isDue).toBe(false);
    backoff.reset();
    expect(backoff.isDue).toBe(true);
  });
});
