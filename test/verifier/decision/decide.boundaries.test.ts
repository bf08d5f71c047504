/** Times and ages at their boundaries: the last second that is good, and the first that is not. */
import { describe, expect, it } from '@jest/globals';
import type { Snapshot } from '../../../src/bundle/compile/snapshot.ts';
import { formatTime } from '../../../src/protocol/rfc3339.ts';
import { NOW_SECONDS } from '../../support/fixtures/bundle-content.ts';
import { type RequestEdits, type RequestPlan, signRequest } from '../../support/fixtures/signed-request.ts';
import {
  compileSite,
  MAX_BROKER_PASSPORT_TTL_SECONDS,
  MAX_STALENESS_SECONDS,
  newSiteKeys,
  type SiteContent,
  siteContent,
} from '../../support/fixtures/snapshot.ts';
import {
  checkNow,
  createTestVerifier,
  outcomeOf,
  REALTIME_STALENESS_SECONDS,
} from '../../support/fixtures/test-verifier.ts';

const keys = newSiteKeys();
const byBilling: RequestPlan = { caller: 'billing', route: 'orders-write' };
const byBroker: RequestPlan = { caller: 'broker', route: 'orders-write' };
const byAutomation: RequestPlan = { caller: 'automation', route: 'orders-write' };

function outcome(snapshot: Snapshot, plan: RequestPlan, edits: RequestEdits = {}): string {
  return outcomeOf(checkNow(createTestVerifier({ snapshot }).verifier, signRequest(keys, plan, edits).facts));
}

async function siteWith(change: (content: SiteContent) => void): Promise<Snapshot> {
  const content = siteContent(keys);
  change(content);
  return compileSite(content);
}

/** `start - skew ≤ now < end + skew`, with the clock standing still and the moments moving. */
describe.each([1, 5, 60])('with a skew of %d s', (skew) => {
  const lastStart = NOW_SECONDS + skew;
  const firstEnd = NOW_SECONDS - skew + 1;
  const site = siteWith((content) => {
    content.skew_seconds = skew;
  });
  const claims = (change: { [name: string]: number }): RequestEdits => ({
    claims: (draft) => void Object.assign(draft, change),
  });
  const proof = (issuedAtSeconds: number, expiresAtSeconds: number): RequestEdits => ({
    transcript: (draft) => void Object.assign(draft, { issuedAtSeconds, expiresAtSeconds }),
  });

  it.each([
    [
      'iat',
      claims({ iat: lastStart, exp: lastStart + 60 }),
      claims({ iat: lastStart + 1, exp: lastStart + 61 }),
    ],
    ['nbf', claims({ nbf: lastStart }), claims({ nbf: lastStart + 1 })],
  ])('a passport begins with its %s', async (_, good, bad) => {
    expect(outcome(await site, byBroker, good)).toBe('allowed');
    expect(outcome(await site, byBroker, bad)).toBe('invalid_request_proof/passport_not_yet_valid 401');
  });

  it('a passport ends with its exp', async () => {
    expect(outcome(await site, byBroker, claims({ iat: firstEnd - 100, exp: firstEnd }))).toBe('allowed');
    expect(outcome(await site, byBroker, claims({ iat: firstEnd - 100, exp: firstEnd - 1 }))).toBe(
      'invalid_request_proof/passport_expired 401',
    );
  });

  it('a proof begins and ends', async () => {
    expect(outcome(await site, byBilling, proof(lastStart, lastStart + 60))).toBe('allowed');
    expect(outcome(await site, byBilling, proof(lastStart + 1, lastStart + 61))).toBe(
      'invalid_request_proof/proof_not_yet_valid 401',
    );
    expect(outcome(await site, byBilling, proof(firstEnd - 60, firstEnd))).toBe('allowed');
    expect(outcome(await site, byBilling, proof(firstEnd - 60, firstEnd - 1))).toBe(
      'invalid_request_proof/proof_expired 401',
    );
  });

  it.each([
    ['not_before', lastStart, lastStart + 1, 'key_not_yet_valid'],
    ['not_after', NOW_SECONDS + 1, NOW_SECONDS, 'key_expired'],
  ] as const)("a broker's key has a %s", async (name, good, bad, detail) => {
    const withTime = (seconds: number) =>
      siteWith((content) => {
        content.skew_seconds = skew;
        for (const issuer of content.issuers ?? []) {
          for (const key of issuer.keys) key[name] = formatTime(seconds);
        }
      });
    expect(outcome(await withTime(good), byBroker)).toBe('allowed');
    expect(outcome(await withTime(bad), byBroker)).toBe(`invalid_request_proof/${detail} 401`);
  });

  it('a derived key ends with its expires_at, whatever the skew', async () => {
    const withTime = (seconds: number) =>
      siteWith((content) => {
        content.skew_seconds = skew;
        for (const key of content.derived_keys ?? []) key.expires_at = formatTime(seconds);
      });
    expect(outcome(await withTime(NOW_SECONDS + 1), byBilling)).toBe('allowed');
    expect(outcome(await withTime(NOW_SECONDS), byBilling)).toBe('invalid_request_proof/key_expired 401');
  });

  it('a bundle has an issued_at and an expires_at', async () => {
    const withTimes = (issued: number, expires: number) =>
      siteWith((content) => {
        content.skew_seconds = skew;
        content.issued_at = formatTime(issued);
        content.expires_at = formatTime(expires);
      });
    expect(outcome(await withTimes(lastStart, lastStart + 9), byBilling)).toBe('allowed');
    expect(outcome(await withTimes(lastStart + 1, lastStart + 9), byBilling)).toBe(
      'stale_bundle_fail_closed/clock 503',
    );
    expect(outcome(await withTimes(firstEnd - 100, firstEnd), byBilling)).toBe('allowed');
    expect(outcome(await withTimes(firstEnd - 100, firstEnd - 1), byBilling)).toBe(
      'stale_bundle_fail_closed/expired 503',
    );
  });
});

describe('a clock that went back behind the newest freshness statement', () => {
  it('makes no bundle fresh: what is known is newer than now', async () => {
    const site = await compileSite(siteContent(keys));
    const freshAsOf = (seconds: number) => outcome({ ...site, freshAsOfSeconds: seconds }, byBilling);
    expect(freshAsOf(NOW_SECONDS + site.skewSeconds)).toBe('allowed');
    expect(freshAsOf(NOW_SECONDS + site.skewSeconds + 1)).toBe('stale_bundle_fail_closed/clock 503');
  });
});

describe('how long things may live', () => {
  const site = compileSite(siteContent(keys));
  const passportOf = (ttlSeconds: number): RequestEdits => ({
    claims: (draft) => {
      draft.exp = draft.iat + ttlSeconds;
    },
  });
  const proofOf = (ttlSeconds: number): RequestEdits => ({
    transcript: (draft) => {
      draft.expiresAtSeconds = draft.issuedAtSeconds + ttlSeconds;
    },
  });
  const tooLong = 'invalid_request_proof/passport_ttl 401';

  it.each([
    [byBilling, 300],
    [byAutomation, 300],
    [byBroker, MAX_BROKER_PASSPORT_TTL_SECONDS],
  ])('a passport of %o at most %d s', async (plan, most) => {
    expect(outcome(await site, plan, passportOf(1))).toBe('allowed');
    expect(outcome(await site, plan, passportOf(most))).toBe('allowed');
    for (const seconds of [most + 1, 0, -1])
      expect(outcome(await site, plan, passportOf(seconds))).toBe(tooLong);
  });

  it('a proof at most 300 s', async () => {
    for (const seconds of [1, 300]) expect(outcome(await site, byBilling, proofOf(seconds))).toBe('allowed');
    for (const seconds of [0, -1, 301, 2 ** 40]) {
      expect(outcome(await site, byBilling, proofOf(seconds))).toBe('invalid_request_proof/proof_ttl 401');
    }
  });
});

describe('how old the bundle may be', () => {
  const site = compileSite(siteContent(keys));
  const outcomeAtAge = async (route: RequestPlan['route'], ageSeconds: number, realtime: number) => {
    const snapshot = { ...(await site), freshAsOfSeconds: NOW_SECONDS - ageSeconds };
    const { verifier } = createTestVerifier({ snapshot, realtimeStalenessSeconds: realtime });
    return outcomeOf(checkNow(verifier, signRequest(keys, { caller: 'billing', route }).facts));
  };

  it.each([
    { route: 'orders-read', realtime: 10, most: MAX_STALENESS_SECONDS },
    { route: 'orders-read', realtime: 1, most: MAX_STALENESS_SECONDS },
    { route: 'prices', realtime: REALTIME_STALENESS_SECONDS, most: REALTIME_STALENESS_SECONDS },
    { route: 'prices', realtime: 3, most: 3 },
    { route: 'prices-capped', realtime: 10, most: 4 },
    { route: 'prices-capped', realtime: 4, most: 4 },
    { route: 'prices-capped', realtime: 3, most: 3 },
  ] as const)('$route with --realtime-staleness $realtime s: $most s', async ({ route, realtime, most }) => {
    for (const age of [-5, 0, most]) expect(await outcomeAtAge(route, age, realtime)).toBe('allowed');
    for (const age of [most + 1, most + 1e6]) {
      expect(await outcomeAtAge(route, age, realtime)).toBe('stale_bundle_fail_closed/stale 503');
    }
  });

  it('makes no difference to an unknown class', async () => {
    expect(await outcomeAtAge('future', 0, 10)).toBe('bundle_freshness_unknown 503');
  });
});
