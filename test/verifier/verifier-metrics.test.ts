/** What the gauges of the bundle say before and after one is loaded. */
import { expect, it } from '@jest/globals';
import { type BundleReading, createVerifierMetrics } from '../../src/verifier/verifier-metrics.ts';

async function gaugesOf(reading: BundleReading | undefined) {
  const { registry } = createVerifierMetrics(() => reading);
  const text = await registry.metrics();
  return text.split('\n').filter((line) => /^proofgate_(bundle_|stale_|break_glass_active)/.test(line));
}

it('read nothing while no bundle is loaded', async () => {
  expect(await gaugesOf(undefined)).toEqual([
    'proofgate_bundle_revision 0',
    'proofgate_bundle_age_seconds Nan',
    'proofgate_break_glass_active 0',
    'proofgate_stale_routes{freshness_class="bounded"} 0',
    'proofgate_stale_routes{freshness_class="realtime"} 0',
  ]);
});

it('read the loaded bundle', async () => {
  const reading = {
    revision: 7,
    ageSeconds: 12,
    isBreakGlass: true,
    staleRoutes: { bounded: 2, realtime: 1 },
  };
  expect(await gaugesOf(reading)).toEqual([
    'proofgate_bundle_revision 7',
    'proofgate_bundle_age_seconds 12',
    'proofgate_break_glass_active 1',
    'proofgate_stale_routes{freshness_class="bounded"} 2',
    'proofgate_stale_routes{freshness_class="realtime"} 1',
  ]);
});
