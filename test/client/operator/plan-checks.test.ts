import { readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { planWarnings } from '../../../src/client/operator/plan-checks.ts';
import { NOTHING, parseSiteFile } from '../../../src/client/operator/site-file.ts';
import { createMemoryReplayStore } from '../../../src/verifier/replay/memory.ts';
import { RedisFences } from '../../../src/verifier/replay/redis-fences.ts';
import { claimAt } from '../../verifier/replay/claims.ts';

const EXAMPLE = parseSiteFile(readFileSync('bundles/site.yaml', 'utf8'), 'site.yaml');
const NOW_SECONDS = 1_800_000_000;

function warningsOf(from: number | undefined, to: number | undefined, isSingle = false) {
  const { skew_seconds: _, ...rest } = EXAMPLE.site;
  const wanted = { ...rest, single_verifier: isSingle, ...(to === undefined ? {} : { skew_seconds: to }) };
  const site = from === undefined ? undefined : { ...rest, skew_seconds: from };
  return planWarnings({ ...EXAMPLE, site: wanted }, { ...NOTHING, site });
}

describe('a larger skew', () => {
  it.each([6, 60])('of %d s is warned of, with as long as the fence in Redis is up', (skew) => {
    const fences = new RedisFences(undefined);
    const epoch = {
      serverSeconds: NOW_SECONDS,
      momentSeconds: NOW_SECONDS,
      largestSkewSeconds: skew,
      why: 'skew_raised',
      lowestExpirySeconds: 0,
    } as const;
    fences.note(new Map([[0, epoch]]), skew);
    const [warning] = warningsOf(5, skew);
    expect(warning?.deniedSeconds).toBe(fences.up(0, NOW_SECONDS)?.secondsLeft);
  });

  it('is warned of with as long as the embedded store refuses, where it may be that', async () => {
    let nowSeconds = NOW_SECONDS;
    const store = createMemoryReplayStore({ clockSeconds: () => nowSeconds });
    nowSeconds += 120;
    store.consume(claimAt(nowSeconds, { skewSeconds: 5 }));
    store.consume(claimAt(nowSeconds, { skewSeconds: 30 }));
    const { fence } = store.health();
    await store.close();
    expect(warningsOf(5, 30, true)[0]?.text).toContain(`--replay memory for ${fence?.secondsLeft} s`);
    expect(warningsOf(5, 30)[0]?.text).not.toContain('memory');
  });
});

it.each([
  ['a new site', undefined, 60],
  ['the same skew', 5, 5],
  ['a smaller one', 60, 5],
  ['none declared', 5, undefined],
])('%s is not warned of', (_what, from, to) => {
  expect(warningsOf(from, to)).toEqual([]);
});
