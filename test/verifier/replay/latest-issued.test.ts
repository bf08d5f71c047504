import { expect, it } from '@jest/globals';
import { LatestIssued } from '../../../src/verifier/replay/latest-issued.ts';

const TEN_MINUTES_MS = 600_000;

it('knows the latest of the last ten minutes, and nothing of twenty minutes ago', () => {
  let nowMs = 5_000;
  const latest = new LatestIssued(() => nowMs);
  expect(latest.seconds).toBe(0);
  latest.note(300);
  latest.note(200);
  expect(latest.seconds).toBe(300);
  nowMs += TEN_MINUTES_MS;
  expect(latest.seconds).toBe(300);
  latest.note(100);
  nowMs += TEN_MINUTES_MS - 1;
  expect(latest.seconds).toBe(300);
  nowMs += 1;
  expect(latest.seconds).toBe(100);
  nowMs += 2 * TEN_MINUTES_MS;
  expect(latest.seconds).toBe(0);
});

it('knows what was consumed before it was first asked', () => {
  const latest = new LatestIssued(() => 5_000);
  latest.note(300);
  expect(latest.seconds).toBe(300);
});

it.each([
  [2 * TEN_MINUTES_MS - 1, 300],
  [2 * TEN_MINUTES_MS, 0],
])('is not asked for %d ms: then it knows %d', (passedMs, expected) => {
  let nowMs = 5_000;
  const latest = new LatestIssued(() => nowMs);
  latest.note(300);
  nowMs += passedMs;
  expect(latest.seconds).toBe(expected);
});
