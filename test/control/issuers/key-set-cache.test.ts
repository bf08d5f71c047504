import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { DEFAULT_REFRESH_INTERVAL_MS, KeySetCache } from '../../../src/control/issuers/key-set-cache.ts';
import type { KeySetEvent, KeySource } from '../../../src/control/issuers/source-keys.ts';
import { FetchBudget, MAX_KEY_AGE_MS } from '../../../src/control/issuers/source-keys.ts';
import { IssuerEnvironment } from '../../support/control/issuers-fixture.ts';
import type { ServiceAccountIssuer } from '../../support/fakes/service-account-issuer.ts';
import { MemoryKeySetRecords } from '../../support/fixtures/key-set-records.ts';
import { waitFor } from '../../support/wait.ts';

const START_MS = 1_800_000_000_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;

let env: IssuerEnvironment;
let issuer: ServiceAccountIssuer;
let source: KeySource;
let records: MemoryKeySetRecords;
let events: KeySetEvent[];
let clock: { nowMs: number };

beforeAll(async () => {
  env = await IssuerEnvironment.start();
});
afterAll(() => env.close());
beforeEach(async () => {
  issuer = await env.issuer();
  source = { sourceId: 'tas_1', revision: 1, jwksUri: issuer.jwksUri };
  records = new MemoryKeySetRecords();
  events = [];
  clock = { nowMs: START_MS };
});

function newCache(): KeySetCache {
  return new KeySetCache({
    fetcher: env.fetcher({ timeoutMs: 2_000 }),
    records,
    nowMs: () => clock.nowMs,
    report: (event) => events.push(event),
  });
}

/** Key lookup result for a token with this key ID. */
async function ask(cache: KeySetCache, kid: string): Promise<'known' | 'unknown' | 'unavailable'> {
  const lookup = await cache.keysFor(source, kid);
  if (lookup.kind === 'unavailable') return 'unavailable';
  return lookup.keys.some((key) => key.kid === kid) ? 'known' : 'unknown';
}

describe('keys are fetched', () => {
  it('once, for however many ask at the same time', async () => {
    const cache = newCache();
    const { kid } = issuer.signer;
    const answers = await Promise.all(Array.from({ length: 500 }, () => ask(cache, kid)));
    expect(new Set(answers)).toEqual(new Set(['known']));
    expect(issuer.requests.keys).toBe(1);
  });

  it('not again while they are young', async () => {
    const cache = newCache();
    await ask(cache, issuer.signer.kid);
    clock.nowMs += DEFAULT_REFRESH_INTERVAL_MS - 1;
    expect(await ask(cache, issuer.signer.kid)).toBe('known');
    expect(issuer.requests.keys).toBe(1);
    clock.nowMs += 1;
    expect(await ask(cache, issuer.signer.kid)).toBe('known');
    expect(issuer.requests.keys).toBe(2);
  });

  it('at once for a key that is not there yet: a rotation during use is not noticed', async () => {
    const cache = newCache();
    const old = issuer.signer;
    await ask(cache, old.kid);
    const { kid } = issuer.rotate();
    const answers = await Promise.all(Array.from({ length: 100 }, () => ask(cache, kid)));
    expect(new Set(answers)).toEqual(new Set(['known']));
    expect(await ask(cache, old.kid)).toBe('known');
    expect(issuer.requests.keys).toBe(2);
  });

  it('again for a token that came while an older fetch was under way', async () => {
    const cache = newCache();
    issuer.setFault('keys', { kind: 'delay', delayMs: 150 });
    const first = ask(cache, issuer.signer.kid);
    await waitFor('the first fetch is under way', () => (issuer.requests.keys === 1 ? true : undefined));
    issuer.setFault('keys', undefined);
    const { kid } = issuer.rotate();
    expect(await Promise.all([first, ask(cache, kid)])).toEqual(['known', 'known']);
    expect(issuer.requests.keys).toBe(2);
  });
});

describe('a key that the issuer took back', () => {
  it('is gone with the next refresh', async () => {
    const cache = newCache();
    const { kid } = issuer.signer;
    await ask(cache, kid);
    issuer.rotate();
    issuer.dropOldKeys();
    expect(await ask(cache, kid)).toBe('known');
    clock.nowMs += DEFAULT_REFRESH_INTERVAL_MS;
    expect(await ask(cache, kid)).toBe('unknown');
  });

  it('is gone also when none is left', async () => {
    const cache = newCache();
    const { kid } = issuer.signer;
    await ask(cache, kid);
    issuer.dropAllKeys();
    clock.nowMs += DEFAULT_REFRESH_INTERVAL_MS;
    expect(await ask(cache, kid)).toBe('unknown');
  });
});

describe('when the issuer cannot be asked', () => {
  it.each([
    ['is down', { kind: 'status', status: 503 }],
    ['answers nonsense', { kind: 'body', body: '{"keys":{}}' }],
    ['sends elsewhere', { kind: 'redirect', status: 302, location: 'https://127.0.0.1/' }],
  ] as const)(
    'because it %s, old keys last 24 h after the last good fetch and not longer',
    async (_, fault) => {
      const cache = newCache();
      const { kid } = issuer.signer;
      await ask(cache, kid);
      issuer.setFault('keys', fault);
      for (
        clock.nowMs = START_MS + HOUR_MS;
        clock.nowMs < START_MS + MAX_KEY_AGE_MS;
        clock.nowMs += HOUR_MS
      ) {
        expect(await ask(cache, kid)).toBe('known');
      }
      clock.nowMs = START_MS + MAX_KEY_AGE_MS;
      expect(await ask(cache, kid)).toBe('known');
      clock.nowMs += 1;
      expect(await ask(cache, kid)).toBe('unavailable');
      expect(events.filter(({ kind }) => kind === 'refresh_failed').length).toBeGreaterThan(20);
      issuer.setFault('keys', undefined);
      clock.nowMs += 2 * MINUTE_MS;
      expect(await ask(cache, kid)).toBe('known');
    },
  );

  it('and there never were keys, it is unavailable, once asked for, and says when to come again', async () => {
    issuer.setFault('keys', { kind: 'status', status: 500 });
    const cache = newCache();
    expect(await cache.keysFor(source, 'a')).toEqual({ kind: 'unavailable', retryAfterSeconds: 1 });
    expect(issuer.requests.keys).toBe(1);
    await ask(cache, 'a');
    expect(await cache.keysFor(source, 'a')).toEqual({ kind: 'unavailable', retryAfterSeconds: 40 });
    expect(issuer.requests.keys).toBe(2);
    clock.nowMs += 40_000;
    issuer.setFault('keys', undefined);
    expect(await ask(cache, issuer.signer.kid)).toBe('known');
  });

  it('a key that is not known is not said to be unknown', async () => {
    const cache = newCache();
    await ask(cache, issuer.signer.kid);
    issuer.setFault('keys', { kind: 'status', status: 503 });
    expect(await ask(cache, 'new')).toBe('unavailable');
    expect(await ask(cache, issuer.signer.kid)).toBe('known');
  });

  it('a token waits for it once in an interval, not each time', async () => {
    const cache = newCache();
    await ask(cache, issuer.signer.kid);
    issuer.setFault('keys', { kind: 'status', status: 503 });
    clock.nowMs += DEFAULT_REFRESH_INTERVAL_MS;
    for (let i = 0; i < 50; i++) expect(await ask(cache, issuer.signer.kid)).toBe('known');
    expect(issuer.requests.keys).toBe(2);
  });
});

describe('records', () => {
  it('let a restart go on without asking the issuer', async () => {
    await ask(newCache(), issuer.signer.kid);
    issuer.setFault('keys', { kind: 'status', status: 503 });
    clock.nowMs += MINUTE_MS;
    expect(await ask(newCache(), issuer.signer.kid)).toBe('known');
    expect(issuer.requests.keys).toBe(1);
  });

  it('do not make keys live longer', async () => {
    await ask(newCache(), issuer.signer.kid);
    issuer.setFault('keys', { kind: 'status', status: 503 });
    clock.nowMs += MAX_KEY_AGE_MS + 1;
    expect(await ask(newCache(), issuer.signer.kid)).toBe('unavailable');
  });

  it('spare an instance the fetch that another has done', async () => {
    const [one, two] = [newCache(), newCache()];
    await ask(one, issuer.signer.kid);
    await ask(two, issuer.signer.kid);
    expect(issuer.requests.keys).toBe(1);
    const { kid } = issuer.rotate();
    clock.nowMs += 2_000;
    await ask(one, kid);
    expect(issuer.requests.keys).toBe(2);
    expect(await ask(two, kid)).toBe('known');
    clock.nowMs += DEFAULT_REFRESH_INTERVAL_MS;
    await one.refreshDue([source]);
    await two.refreshDue([source]);
    expect(issuer.requests.keys).toBe(3);
  });

  it('hold why a fetch failed, and keep the keys', async () => {
    const cache = newCache();
    await ask(cache, issuer.signer.kid);
    issuer.setFault('keys', { kind: 'status', status: 503 });
    clock.nowMs += DEFAULT_REFRESH_INTERVAL_MS;
    expect(await ask(cache, issuer.signer.kid)).toBe('known');
    expect(records.failures).toEqual([{ code: 'http_status', attemptedAtMs: clock.nowMs }]);
  });

  it('that cannot be written when a fetch fails leave the keys in memory', async () => {
    const cache = newCache();
    await ask(cache, issuer.signer.kid);
    issuer.setFault('keys', { kind: 'status', status: 503 });
    records.isBroken = true;
    clock.nowMs += DEFAULT_REFRESH_INTERVAL_MS;
    expect(await ask(cache, issuer.signer.kid)).toBe('known');
    expect(events.at(-1)).toEqual({ kind: 'records_failed', source, while: 'save' });
  });

  it('from the future, or that are no key sets, are not believed', async () => {
    const jwks = JSON.stringify({ keys: [issuer.signer.jwk] });
    const { kid } = issuer.signer;
    issuer.setFault('keys', { kind: 'status', status: 503 });
    await records.save(source, { jwks, fetchedAtMs: START_MS + HOUR_MS });
    expect(await ask(newCache(), kid)).toBe('unavailable');
    await records.save(source, { jwks: '{}', fetchedAtMs: START_MS + 2 * HOUR_MS });
    clock.nowMs += 2 * HOUR_MS;
    expect(await ask(newCache(), kid)).toBe('unavailable');
  });

  it('that cannot be had leave the issuer to be asked, and keys in memory', async () => {
    records.isBroken = true;
    const cache = newCache();
    expect(await ask(cache, issuer.signer.kid)).toBe('known');
    expect(events.map((event) => (event.kind === 'records_failed' ? event.while : event.kind))).toEqual([
      'load',
      'refreshed',
      'save',
    ]);
  });

  it('of a draft that was edited are not mixed up in memory', async () => {
    const other = await env.issuer();
    const cache = newCache();
    await ask(cache, issuer.signer.kid);
    records = new MemoryKeySetRecords();
    const lookup = await cache.keysFor({ ...source, jwksUri: other.jwksUri }, other.signer.kid);
    expect(other.requests.keys).toBe(1);
    expect(lookup.kind === 'keys' && lookup.keys.some(({ kid }) => kid === other.signer.kid)).toBe(true);
  });
});

describe('the clock', () => {
  it('set back makes keys from later unusable until they are fetched again', async () => {
    const cache = newCache();
    await ask(cache, issuer.signer.kid);
    clock.nowMs -= HOUR_MS;
    expect(await ask(cache, issuer.signer.kid)).toBe('known');
    expect(issuer.requests.keys).toBe(2);
  });
});

describe('a scheduled round', () => {
  it('refreshes every source that is due, and no other', async () => {
    const others = await Promise.all(Array.from({ length: 6 }, () => env.issuer()));
    const sources = others.map(({ jwksUri }, i) => ({ sourceId: `tas_${i}`, revision: 1, jwksUri }));
    const cache = newCache();
    for (const [passedMs, fetched] of [
      [0, 1],
      [MINUTE_MS, 1],
      [DEFAULT_REFRESH_INTERVAL_MS, 2],
    ] as const) {
      clock.nowMs = START_MS + passedMs;
      await cache.refreshDue(sources);
      expect(others.map(({ requests }) => requests.keys)).toEqual(others.map(() => fetched));
    }
  });

  it('forgets a source on request', async () => {
    const cache = newCache();
    await ask(cache, issuer.signer.kid);
    cache.forget(source);
    records = new MemoryKeySetRecords();
    expect(await ask(cache, issuer.signer.kid)).toBe('known');
    expect(records.loads).toBe(0);
  });
});

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
