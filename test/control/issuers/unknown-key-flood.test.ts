import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { KeySetCache } from '../../../src/control/issuers/key-set-cache.ts';
import { FetchBudget } from '../../../src/control/issuers/source-keys.ts';
import { MemoryKeySetRecords } from '../../fakes/key-set-records.ts';
import type { ServiceAccountIssuer } from '../../fakes/service-account-issuer.ts';
import { IssuerWorld } from './issuers-fixture.ts';

const START_MS = 1_800_000_000_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;

let world: IssuerWorld;
let issuer: ServiceAccountIssuer;
let records: MemoryKeySetRecords;
let clock: { nowMs: number };

beforeAll(async () => {
  world = await IssuerWorld.start();
});
afterAll(() => world.close());
beforeEach(async () => {
  issuer = await world.issuer();
  records = new MemoryKeySetRecords();
  clock = { nowMs: START_MS };
});

const newCache = () => new KeySetCache({ fetcher: world.fetcher(), records, nowMs: () => clock.nowMs });

/** Key lookup result for a token with this key ID. */
async function ask(cache: KeySetCache, kid: string): Promise<'known' | 'unknown' | 'unavailable'> {
  const lookup = await cache.keysFor({ sourceId: 'tas_1', revision: 1, jwksUri: issuer.jwksUri }, kid);
  if (lookup.kind === 'unavailable') return 'unavailable';
  return lookup.keys.some((key) => key.kid === kid) ? 'known' : 'unknown';
}

describe('10,000 unknown keys in 60 s cause at most 3 fetches', () => {
  const TOKENS = 10_000;
  it.each<[string, (i: number) => number]>([
    ['evenly', (i) => (i * MINUTE_MS) / (TOKENS - 1)],
    ['all at the beginning', () => 0],
    ['half at the beginning, half at the end', (i) => (i < TOKENS / 2 ? 0 : MINUTE_MS)],
    ['in bursts of 1,000', (i) => Math.floor(i / 1_000) * 6_000],
  ])('%s', async (_, offsetMs) => {
    const cache = newCache();
    let answered = 0;
    let atOnce: Promise<void>[] = [];
    for (let i = 0; i < TOKENS; i++) {
      const nowMs = START_MS + offsetMs(i);
      if (nowMs !== clock.nowMs || atOnce.length === 1_000) {
        await Promise.all(atOnce);
        atOnce = [];
        clock.nowMs = nowMs;
      }
      atOnce.push(
        ask(cache, `junk-${i}`).then((answer) => {
          expect(answer).not.toBe('known');
          answered += 1;
        }),
      );
    }
    await Promise.all(atOnce);
    expect(answered).toBe(TOKENS);
    expect(issuer.requests.keys).toBeGreaterThanOrEqual(2);
    expect(issuer.requests.keys).toBeLessThanOrEqual(3);
    expect(issuer.requests.discovery).toBe(0);
    // Tokens with a known key still succeed, and the database load stays bounded.
    expect(await ask(cache, issuer.signer.kid)).toBe('known');
    expect(records.loads).toBeLessThanOrEqual(62);
  });

  it('also when the issuer is down', async () => {
    issuer.setFault('keys', { kind: 'status', status: 500 });
    const cache = newCache();
    for (let i = 0; i < 1_000; i++) {
      clock.nowMs = START_MS + i * 60;
      expect(await ask(cache, `junk-${i}`)).toBe('unavailable');
    }
    expect(issuer.requests.keys).toBeLessThanOrEqual(3);
  });

  it('whenever they come: no 60 s hold more than 3', () => {
    const gapsMs = fc.array(fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 90_000 })), {
      maxLength: 200,
    });
    fc.assert(
      fc.property(gapsMs, (gaps) => {
        const budget = new FetchBudget();
        const taken: number[] = [];
        let nowMs = START_MS;
        for (const gapMs of gaps) {
          nowMs += gapMs;
          if (budget.take(nowMs)) taken.push(nowMs);
        }
        return taken.every((time) => taken.filter((t) => t >= time && t <= time + MINUTE_MS).length <= 3);
      }),
    );
  });

  it('a clock that is set back adds nothing', () => {
    const budget = new FetchBudget();
    expect([budget.take(START_MS), budget.take(START_MS), budget.take(START_MS)]).toEqual([
      true,
      true,
      false,
    ]);
    expect(budget.take(START_MS - HOUR_MS)).toBe(false);
    expect(budget.waitMs(START_MS - HOUR_MS)).toBe(40_000);
    expect(budget.take(START_MS - HOUR_MS + 40_000)).toBe(true);
  });
});
