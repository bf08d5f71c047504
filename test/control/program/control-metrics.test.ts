/** Tests metric names, on which dashboards and alerts depend: the existing ones and those in the documentation are the same. */
import { describe, expect, it } from '@jest/globals';
import {
  createControlMetrics,
  type PropagationReading,
} from '../../../src/control/program/control-metrics.ts';
import { codesIn, readText, tableNamed } from '../../support/docs/markdown.ts';

const OURS = /^proofgate_/;
const NONE = { propagation: async () => [], renewals: async () => [], oauthKeys: async () => [] };

async function namesOf(readings: readonly PropagationReading[] = []): Promise<readonly string[]> {
  const metrics = createControlMetrics({ ...NONE, propagation: async () => readings });
  const all = await metrics.registry.getMetricsAsJSON();
  return all.map(({ name }) => name).filter((name) => OURS.test(name));
}

describe('metrics of Control', () => {
  it('are those that docs/reference/metrics.md names', async () => {
    const documented = tableNamed(readText('docs/reference/metrics.md'), 'control-metrics').flatMap(
      ([name]) => codesIn(name),
    );
    expect([...new Set(documented)].sort()).toEqual([...(await namesOf())].sort());
  });

  it('state how far the targets of each site are behind, from one reading a scrape', async () => {
    let reads = 0;
    let readings: readonly PropagationReading[] = [
      {
        siteId: 'shop-eu-1',
        lagSeconds: 1.5,
        targetsBehind: 2,
        replayStores: 2,
        expectedReplayStores: 'per_region',
      },
      { siteId: 'shop-us-1', lagSeconds: 0, targetsBehind: 0, replayStores: 1, expectedReplayStores: 'one' },
    ];
    const metrics = createControlMetrics({
      propagation: async () => {
        reads += 1;
        return readings;
      },
      renewals: async () => [{ siteId: 'shop-eu-1', policiesNotRenewed: 3 }],
      oauthKeys: async () => [{ siteId: 'shop-eu-1', ageSeconds: 3601 }],
    });
    const text = await metrics.registry.metrics();
    expect(text).toMatch(/^proofgate_control_targets_behind\{site_id="shop-eu-1"\} 2$/m);
    expect(text).toMatch(/^proofgate_control_propagation_lag_seconds\{site_id="shop-eu-1"\} 1\.5$/m);
    expect(text).toMatch(/^proofgate_control_targets_behind\{site_id="shop-us-1"\} 0$/m);
    expect(text).toMatch(/^proofgate_control_replay_stores\{site_id="shop-eu-1",expected="per_region"\} 2$/m);
    expect(text).toMatch(/^proofgate_control_policies_not_renewed\{site_id="shop-eu-1"\} 3$/m);
    expect(text).toMatch(/^proofgate_control_oauth_keys_age_seconds\{site_id="shop-eu-1"\} 3601$/m);
    expect(reads).toBe(1);
    readings = [];
    expect(await metrics.registry.metrics()).not.toMatch(/^proofgate_control_targets_behind\{/m);
    expect(reads).toBe(2);
  });

  it('time requests, but no long polls', async () => {
    const metrics = createControlMetrics(NONE);
    metrics.requestAnswered('/v1/sites', 'GET', 200, 0.02);
    metrics.requestAnswered('/v1/targets/self/bundle', 'GET', 304, undefined);
    const text = await metrics.registry.metrics();
    expect(text).toMatch(
      /^proofgate_control_requests_total\{route="\/v1\/targets\/self\/bundle",method="GET",status="304"\} 1$/m,
    );
    expect(text).toMatch(/^proofgate_control_request_seconds_count\{route="\/v1\/sites"\} 1$/m);
    expect(text).not.toMatch(/request_seconds_count\{route="\/v1\/targets/);
  });
});
