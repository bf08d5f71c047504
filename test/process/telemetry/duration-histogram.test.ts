/** Tests that a scrape of the histogram shows the same as the library's own histogram. */
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { Histogram, Registry } from 'prom-client';
import {
  DURATION_BUCKETS_SECONDS,
  DurationHistogram,
} from '../../../src/process/telemetry/duration-histogram.ts';

const NAME = 'test_seconds';
const HELP = 'A test.';
const STEPS = ['a', 'b'];

const observation = fc.record({
  step: fc.constantFrom(...STEPS),
  seconds: fc.oneof(
    fc.constantFrom(0, ...DURATION_BUCKETS_SECONDS),
    fc.double({ min: 0, max: 1, noNaN: true }),
  ),
});

async function linesOf(registry: Registry): Promise<readonly string[]> {
  return (await registry.metrics()).split('\n').sort();
}

describe('a duration histogram', () => {
  it('is scraped as the library would show it', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(observation, { maxLength: 40 }), async (observations) => {
        const [ours, theirs] = [new Registry(), new Registry()];
        const histogram = new DurationHistogram({
          name: NAME,
          help: HELP,
          labelNames: ['step'],
          registry: ours,
        });
        const series = new Map(STEPS.map((step) => [step, histogram.series({ step })]));
        const buckets = [...DURATION_BUCKETS_SECONDS];
        const other = new Histogram({
          name: NAME,
          help: HELP,
          labelNames: ['step'],
          buckets,
          registers: [theirs],
        });
        for (const { seconds, step } of observations) {
          series.get(step)?.(seconds);
          other.observe({ step }, seconds);
        }
        expect(await linesOf(ours)).toEqual(await linesOf(theirs));
      }),
      { numRuns: 200 },
    );
  });
});
