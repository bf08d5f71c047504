/** The smuggling corpus at one enforcement point: no case may succeed. */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type CampaignResult, runCampaign } from '../support/hostile/campaign.ts';
import type { Http1Case, Http2Case } from '../support/hostile/cases.ts';
import {
  type RecordingUpstream,
  startRecordingUpstream,
  type Temper,
} from '../support/hostile/recording-upstream.ts';
import type { EnforcementPoint, EnforcementPointDriver } from '../support/points/enforcement-point.ts';
import { skipUnavailable } from '../support/points/skip-unavailable.ts';
import { createSite, type Site } from '../support/site/site.ts';
import { HTTP1_CASES } from './http1/corpus.ts';
import { HTTP2_CASES } from './http2/corpus.ts';

export function smugglingSuite(driver: EnforcementPointDriver, tempers: readonly Temper[]): void {
  const { takesBodies = true } = driver;
  if (skipUnavailable(driver)) return;
  describe.each(tempers)(`${driver.name} before a %s upstream`, (temper) => {
    let site: Site;
    let point: EnforcementPoint;
    let recording: RecordingUpstream | undefined;
    beforeAll(async () => {
      site = await createSite();
      point = await driver.start({
        site,
        bundleDirectory: await site.makeBundle(),
        replay: 'memory',
        audit: 'required_file',
        holderQuota: undefined,
        becomesReady: true,
        openUpstream: async () => {
          recording = await startRecordingUpstream(temper);
          return recording;
        },
      });
    });
    afterAll(async () => {
      await point.stop();
      await site.remove();
    });

    const run = (cases: readonly (Http1Case | Http2Case)[]) => runCampaign({ site, point, recording }, cases);

    const controlsOf = (cases: readonly (Http1Case | Http2Case)[]) =>
      cases
        .filter(({ family, name }) => family === 'control' && (takesBodies || !name.includes('POST')))
        .map(({ name }) => name);

    it(`HTTP/1.1: none of ${HTTP1_CASES.length} cases succeeds`, async () => {
      expectNoSuccess(await run(HTTP1_CASES), controlsOf(HTTP1_CASES));
    });

    if (driver.protocols.includes('HTTP/2')) {
      it(`HTTP/2: none of ${HTTP2_CASES.length} cases succeeds`, async () => {
        expectNoSuccess(await run(HTTP2_CASES), controlsOf(HTTP2_CASES));
      });
    }
  });
}

function expectNoSuccess(
  { allowedCases, successes, victims }: CampaignResult,
  controls: readonly string[],
): void {
  const texts = successes.map(({ caseName = '?', kind, what }) => `${kind}, ${caseName}: ${what}`);
  expect({ successes: texts.length, first: texts.slice(0, 20) }).toEqual({ successes: 0, first: [] });
  // A campaign counts only if the point served: the unchanged requests, and most innocent callers.
  expect(controls.filter((name) => !allowedCases.has(name))).toEqual([]);
  expect(victims.answered).toBeGreaterThan(victims.sent * 0.9);
}
