/** Tests when a stored key is renewed, as a function of the known state and the time. */
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import {
  CHECK_INTERVAL_MS,
  keyUrgency,
  type LastFailure,
  type Moment,
  nextStep,
  propagationWaitMs,
  type RenewalSituation,
  retryWaitMs,
} from '../../../src/caller/agent/renewal.ts';
import type { EnrolledKeyRecord, IssuedKey } from '../../../src/caller/enroll/enrollment-state.ts';

const T0 = Date.parse('2026-11-22T12:00:00Z');
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

function keyUntil(expiresAtMs: number, members: Partial<IssuedKey> = {}): EnrolledKeyRecord {
  return {
    target: { controlUrl: 'https://control.shop.example', policy: 'epr_1' },
    enrollmentId: 'enr_1',
    createdAtMs: T0,
    key: {
      keyId: 'dk_1',
      fingerprint: 'x',
      status: 'active',
      expiresAtMs,
      clientId: 'billing',
      coordinates: {
        authSite: 'shop-eu-1',
        keyId: 'dk_1',
        issuer: 'https://control.shop.example',
        trustDomain: 'shop.example',
        subject: 'client:billing',
        keyBinding: 'software',
      },
      profiles: [],
      ...members,
    },
  };
}

function tokenUntil(expiresAtMs: number | undefined, digest = 'first'): RenewalSituation['token'] {
  return { kind: 'token', digest, expiresAtMs };
}

/** A key valid for one hour from a token valid for one hour, enrolled at T0. */
const GOOD: RenewalSituation = {
  current: keyUntil(T0 + HOUR),
  token: tokenUntil(T0 + HOUR),
  enrolledWithDigest: 'first',
  lastFailure: undefined,
  refreshSkewMs: 5 * MINUTE,
  spread: 0,
};
const SECOND_TOKEN = tokenUntil(T0 + 2 * HOUR, 'second');

function at(passedMs: number): Moment {
  return { wallMs: T0 + passedMs, monotonicMs: passedMs };
}

function lastFailure(
  kind: LastFailure['kind'],
  notBeforeMonotonicMs: number,
  tokenDigest = 'first',
): LastFailure {
  return { kind, code: 'some_code', tokenDigest, notBeforeMonotonicMs };
}

describe('a key in place', () => {
  it.each<readonly [string, Partial<RenewalSituation>, number, object]>([
    ['is left alone while it is young', {}, 10 * MINUTE, { kind: 'wait', waitMs: CHECK_INTERVAL_MS }],
    [
      'with its token is not enrolled again, for nothing would come of it',
      {},
      58 * MINUTE,
      { why: 'token_not_renewed' },
    ],
    ['is enrolled when the token changes', { token: SECOND_TOKEN }, 48 * MINUTE, { cause: 'token_changed' }],
    [
      'is not, when the token that it was enrolled with is unknown',
      { token: SECOND_TOKEN, enrolledWithDigest: undefined },
      48 * MINUTE,
      { kind: 'wait', why: undefined },
    ],
    ['is enrolled near its end', { token: tokenUntil(T0 + 2 * HOUR) }, 55 * MINUTE, { cause: 'near_end' }],
    [
      'is enrolled near its end, when the token does not say its own',
      { token: tokenUntil(undefined) },
      55 * MINUTE,
      { cause: 'near_end' },
    ],
    [
      'is not enrolled for a token that ends no later',
      { token: tokenUntil(T0 + HOUR + 1000, 'second') },
      30 * MINUTE,
      { kind: 'wait', why: undefined },
    ],
    [
      'is enrolled some time before that, by chance',
      { token: tokenUntil(T0 + 2 * HOUR), spread: 0.99 },
      54 * MINUTE,
      { cause: 'near_end' },
    ],
    ['that has ended is none', { token: tokenUntil(T0 + HOUR) }, 61 * MINUTE, { cause: 'no_key' }],
    [
      'that is revoked is none',
      { current: keyUntil(T0 + HOUR, { status: 'revoked' }) },
      MINUTE,
      { cause: 'no_key' },
    ],
    ['that is not there is none', { current: undefined }, 0, { cause: 'no_key' }],
  ])('%s', (_what, members, passedMs, step) => {
    expect(nextStep({ ...GOOD, ...members }, at(passedMs))).toMatchObject(step);
  });

  it('is looked at to the millisecond when it becomes due', () => {
    const step = nextStep({ ...GOOD, token: tokenUntil(T0 + 2 * HOUR) }, at(55 * MINUTE - 3));
    expect(step).toEqual({ kind: 'wait', waitMs: 3, why: undefined });
  });

  it('has at most 15 % of its life as skew', () => {
    const short = { ...GOOD, current: keyUntil(T0 + 10 * MINUTE), token: tokenUntil(T0 + HOUR) };
    expect(nextStep(short, at(8 * MINUTE))).toMatchObject({ kind: 'wait' });
    expect(nextStep(short, at(8.5 * MINUTE))).toMatchObject({ kind: 'enroll', cause: 'near_end' });
  });
});

describe('a clock', () => {
  const due = { ...GOOD, token: tokenUntil(T0 + 24 * HOUR) };

  it('that jumps ahead makes the renewal due at the next look', () => {
    expect(nextStep(due, { wallMs: T0 + 12 * HOUR, monotonicMs: 1000 })).toEqual({
      kind: 'enroll',
      cause: 'no_key',
    });
  });

  it('that is set back puts it off, and leaves a lastFailure to end when it would have', () => {
    expect(nextStep(due, { wallMs: T0 - 24 * HOUR, monotonicMs: 1000 })).toMatchObject({ kind: 'wait' });
    const held = { ...due, current: undefined, lastFailure: lastFailure('unavailable', 1000) };
    expect(nextStep(held, { wallMs: T0 - 24 * HOUR, monotonicMs: 1000 })).toMatchObject({ kind: 'enroll' });
  });

  it.each([0, 1, 1e12])(
    'is looked at every ten seconds at least, whatever there is to wait for (%d)',
    (passedMs) => {
      fc.assert(
        fc.property(fc.double({ noNaN: true, min: -1e15, max: 1e15 }), (notBefore) => {
          for (const kind of ['unavailable', 'pending', 'refused', 'denied'] as const) {
            const step = nextStep(
              { ...GOOD, current: undefined, lastFailure: lastFailure(kind, notBefore) },
              at(passedMs),
            );
            if (step.kind === 'wait') {
              expect(step.waitMs).toBeGreaterThanOrEqual(1);
              expect(step.waitMs).toBeLessThanOrEqual(CHECK_INTERVAL_MS);
            }
          }
        }),
      );
    },
  );
});

describe('after a lastFailure', () => {
  const missing = { ...GOOD, current: undefined };

  it.each(['unavailable', 'pending', 'refused', 'denied'] as const)('%s: waits for its time', (kind) => {
    const held = { ...missing, lastFailure: lastFailure(kind, MINUTE) };
    expect(nextStep(held, at(MINUTE - 1))).toEqual({ kind: 'wait', waitMs: 1, why: 'some_code' });
    expect(nextStep(held, at(MINUTE))).toMatchObject({ kind: 'enroll' });
  });

  it.each(['refused', 'denied'] as const)('%s: another token is another question', (kind) => {
    const held = {
      ...missing,
      token: SECOND_TOKEN,
      lastFailure: lastFailure(kind, Number.POSITIVE_INFINITY),
    };
    expect(nextStep(held, at(0))).toMatchObject({ kind: 'enroll' });
  });

  it.each(['unavailable', 'pending'] as const)('%s: another token changes nothing', (kind) => {
    const held = { ...missing, token: SECOND_TOKEN, lastFailure: lastFailure(kind, MINUTE) };
    expect(nextStep(held, at(0))).toMatchObject({ kind: 'wait' });
  });

  it('a token file that cannot be read is looked at again', () => {
    const token = { kind: 'fault', code: 'file_not_found' } as const;
    expect(nextStep({ ...missing, token }, at(0))).toMatchObject({ kind: 'wait', why: 'file_not_found' });
  });
});

describe('back-off', () => {
  const waits = (kind: LastFailure['kind'], random: number) =>
    [1, 2, 3, 7, 50].map((count) =>
      retryWaitMs({ kind, count, retryAfterMs: undefined }, keyUrgency(undefined, T0), random),
    );

  it('doubles to its bound', () => {
    expect(waits('unavailable', 0)).toEqual([1000, 2000, 4000, 60_000, 60_000]);
    expect(waits('refused', 0)).toEqual([60_000, 120_000, 240_000, 600_000, 600_000]);
    expect(waits('pending', 0)).toEqual([30_000, 30_000, 30_000, 30_000, 30_000]);
    expect(waits('denied', 0.5)[0]).toBe(Number.POSITIVE_INFINITY);
  });

  it('is shortened by up to a quarter, by chance', () => {
    expect(waits('unavailable', 0.999)[0]).toBeCloseTo(750, -1);
  });

  it('is never shorter than Retry-After, where the key allows', () => {
    const failure = { kind: 'unavailable', count: 1, retryAfterMs: 90_000 } as const;
    const urgency = keyUrgency(keyUntil(T0 + 5 * MINUTE), T0);
    expect([0, 0.5, 0.999].every((random) => retryWaitMs(failure, urgency, random) >= 90_000)).toBe(true);
  });

  it.each<readonly [LastFailure['kind'], number, EnrolledKeyRecord | undefined, number]>([
    // A minute before the key ends, for Retry-After and for the backoff.
    ['unavailable', 1, keyUntil(T0 + 5 * MINUTE), 4 * MINUTE],
    ['refused', 50, keyUntil(T0 + 5 * MINUTE), 4 * MINUTE],
    ['pending', 1, keyUntil(T0 + 1.25 * MINUTE), 15_000],
    ['unavailable', 50, keyUntil(T0 + MINUTE), 10_000],
    ['refused', 50, keyUntil(T0 + 1), 10_000],
    ['unavailable', 1, undefined, 10_000],
    ['unavailable', 50, undefined, MINUTE],
    ['unavailable', 1, keyUntil(T0), 10_000],
    ['unavailable', 1, keyUntil(T0 + HOUR, { status: 'revoked' }), 10_000],
    ['denied', 1, keyUntil(T0 + 5 * MINUTE), Number.POSITIVE_INFINITY],
  ])('%s, failure %i, Retry-After of an hour: what the key allows', (kind, count, current, expectedMs) => {
    const failure = { kind, count, retryAfterMs: HOUR };
    expect(retryWaitMs(failure, keyUrgency(current, T0), 0)).toBe(expectedMs);
  });
});

describe('how long a new key waits for verifiers', () => {
  it('is half of what the old one has left', () => {
    expect(propagationWaitMs(keyUntil(T0 + 2 * HOUR), keyUntil(T0 + 10 * MINUTE), T0)).toBe(5 * MINUTE);
  });

  it('is short where there is none, or a dead one', () => {
    for (const old of [undefined, keyUntil(T0 - 1), keyUntil(T0 + HOUR, { status: 'revoked' })]) {
      expect(propagationWaitMs(keyUntil(T0 + HOUR), old, T0)).toBe(30_000);
      expect(propagationWaitMs(keyUntil(T0 + MINUTE), old, T0)).toBe(15_000);
    }
  });

  it('leaves half of its own life', () => {
    expect(propagationWaitMs(keyUntil(T0 + MINUTE), keyUntil(T0 + HOUR), T0)).toBe(30_000);
  });
});
