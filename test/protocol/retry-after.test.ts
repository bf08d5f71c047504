import { expect, it } from '@jest/globals';
import { parseRetryAfterMs } from '../../src/protocol/retry-after.ts';

const NOW_MS = Date.UTC(2026, 10, 21, 4, 0, 0);

it.each([
  ['0', 0],
  ['7', 7000],
  ['30', 30_000],
  ['2026', 2_026_000],
  ['99999', 3_600_000],
  ['9999999999', undefined],
  ['Sat, 21 Nov 2026 04:00:10 GMT', 10_000],
  ['Sat, 21 Nov 2026 03:00:00 GMT', 0],
  ['-1', undefined],
  ['1.5', undefined],
  ['soon', undefined],
  ['', undefined],
  [undefined, undefined],
  [['1', '2'], undefined],
])('%j is %j ms', (header, waitMs) => {
  expect(parseRetryAfterMs(header, NOW_MS)).toBe(waitMs);
});
