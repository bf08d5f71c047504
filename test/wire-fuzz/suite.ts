/**
 * Generated requests at one enforcement point: at the edges of the grammar, with up to 5,000 header lines, in chunks and frames of
 * one byte, cut off, and with late answers. Nothing unsigned is delivered, nothing twice, and the point goes on serving.
 * `PROOFGATE_TEST_SEED` repeats a run, `PROOFGATE_TEST_REQUESTS` sets the number of requests.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { RedisGate } from '../support/harness/redis-gate.ts';
import { TestRedisServer } from '../support/harness/redis-server.ts';
import { type CampaignTarget, runCampaign } from '../support/hostile/campaign.ts';
import type { Http1Case, Http2Case } from '../support/hostile/cases.ts';
import { type RecordingUpstream, startRecordingUpstream } from '../support/hostile/recording-upstream.ts';
import type { EnforcementPoint, EnforcementPointDriver } from '../support/points/enforcement-point.ts';
import { skipUnavailable } from '../support/points/skip-unavailable.ts';
import { createSite, type Site } from '../support/site/site.ts';
import { http1Case } from './http1-grammar.ts';
import { http2Case } from './http2-grammar.ts';
import { casesOf, highestResidentMib, MAX_RESIDENT_MIB, REQUESTS, SEED } from './run.ts';

/** What the upstream recorded is judged, and forgotten, after so many cases. */
const CASES_AT_ONCE = 500;
/** Requests whose proofs go to a Redis that answers late. */
const LATE_REQUESTS = Math.ceil(REQUESTS / 10);

type FuzzTarget = CampaignTarget & { readonly point: Pick<EnforcementPoint, 'pid'> };

export function wireFuzz(driver: EnforcementPointDriver): void {
  if (skipUnavailable(driver)) return;
  describe(`${driver.name}, seed ${SEED}`, () => {
    const ends: (() => Promise<unknown>)[] = [];
    let site: Site;
    beforeEach(async () => {
      site = await createSite();
      ends.push(() => site.remove());
    });
    afterEach(async () => {
      for (const end of ends.splice(0).reverse()) await end();
    });

    async function start(replay: string): Promise<FuzzTarget> {
      let recording: RecordingUpstream | undefined;
      const point = await driver.start({
        site,
        bundleDirectory: await site.makeBundle(),
        replay,
        audit: 'required_file',
        holderQuota: undefined,
        becomesReady: true,
        openUpstream: async () => {
          recording = await startRecordingUpstream('strict');
          return recording;
        },
      });
      ends.push(() => point.stop());
      return { site, point, recording, lanes: 48, casesBetweenVictims: 10, servesWithinMs: 60_000 };
    }

    it.each(driver.protocols)(
      '%s',
      async (protocol) => {
        const target = await start('memory');
        const requests = REQUESTS / driver.protocols.length;
        const cases = protocol === 'HTTP/2' ? casesOf(http2Case, requests) : casesOf(http1Case, requests);
        let allowed = 0;
        for (let first = 0; first < cases.length; first += CASES_AT_ONCE) {
          allowed += await expectNoSuccess(target, cases.slice(first, first + CASES_AT_ONCE));
        }
        // A run counts only if a good part of the requests passed the check.
        expect(allowed).toBeGreaterThan(cases.length / 20);
        console.log(`${driver.name}, ${protocol}: ${cases.length} cases, ${allowed} of them allowed`);
      },
      1_800_000,
    );

    it('late answers of Redis', async () => {
      const redis = await TestRedisServer.start('--maxmemory-policy', 'noeviction');
      ends.push(() => redis.stop());
      const gate = await RedisGate.start(() => Number(new URL(redis.url).port));
      ends.push(() => gate.close());
      const target = await start(`redis://127.0.0.1:${gate.port}`);
      let isOver = false;
      // Some answers come after the time-out of 400 ms.
      const hold = async () => {
        for (let round = 0; !isOver; round += 1) {
          gate.hold(() => true);
          await sleep(round % 3 === 0 ? 500 : 40);
          gate.release();
          await sleep(100);
        }
      };
      const holding = hold();
      const cases = casesOf(http1Case, LATE_REQUESTS);
      try {
        await expectNoSuccess(target, cases);
      } finally {
        isOver = true;
        await holding;
      }
    }, 1_800_000);
  });
}

/** @returns the number of cases of which the verifier allowed a request */
async function expectNoSuccess(
  target: FuzzTarget,
  cases: readonly (Http1Case | Http2Case)[],
): Promise<number> {
  const { allowedCases, successes } = await runCampaign(target, cases);
  const texts = successes.map(({ caseName = '?', kind, what }) => `${kind}, ${caseName}: ${what}`);
  expect(texts.slice(0, 5)).toEqual([]);
  const { pid } = target.point;
  if (pid !== undefined) expect(highestResidentMib(pid)).toBeLessThan(MAX_RESIDENT_MIB);
  return allowedCases.size;
}
