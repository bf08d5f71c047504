/**
 * When a key that is kept enrolled is enrolled anew: decided from what is known at a moment, so that a clock that jumps or
 * a machine that slept changes nothing but the answer. Source: docs/workloads.md "When it enrolls".
 */
import { type EnrolledKeyRecord, refreshFromMs } from './enrollment-state.ts';

/** Longest that nobody looks: a new token, a clock that was set and a machine that woke up are noticed within it. */
export const LOOK_EVERY_MS = 10_000;
/** A token that would prolong the key by less is not worth one of the keys that it may enroll. */
const MIN_GAIN_MS = 60_000;
/** Most of the time between renewal and expiry that is taken off, by chance, so that pods do not come all at once. */
const SPREAD_SHARE = 0.25;

export interface Moment {
  /** Keys and tokens end by it. */
  readonly wallMs: number;
  /** Waits are measured by it: never goes back. */
  readonly monotonicMs: number;
}

/** What a token file says at this moment. */
export type TokenSight =
  | {
      readonly kind: 'token';
      /** Tells it from another; nothing that can be spent. */
      readonly digest: string;
      /** Undefined where it does not say. */
      readonly expiresAtMs: number | undefined;
    }
  | { readonly kind: 'fault'; readonly code: string };

export type SetbackKind =
  /** Control cannot be asked, or wants to be left alone. */
  | 'unavailable'
  /** Somebody has to approve. */
  | 'pending'
  /** Control said no, and will again until something is changed. */
  | 'refused'
  /** An operator said no to this very token. */
  | 'denied';

/** What the last attempt ended with. */
export interface Setback {
  readonly kind: SetbackKind;
  readonly code: string;
  /** Of the token that was shown; undefined when there was none. */
  readonly tokenDigest: string | undefined;
  readonly notBeforeMonotonicMs: number;
}

export interface RenewalSituation {
  /** The key in place, unless it is revoked or another Control's or policy's. */
  readonly current: EnrolledKeyRecord | undefined;
  readonly token: TokenSight;
  /** Of the token that the key in place was enrolled with; undefined when nobody knows any more. */
  readonly enrolledWithDigest: string | undefined;
  readonly setback: Setback | undefined;
  readonly refreshSkewMs: number;
  /** 0 to below 1, one for each key. */
  readonly spread: number;
}

export type RenewalCause = 'no_key' | 'token_changed' | 'near_end';

export type RenewalStep =
  | { readonly kind: 'enroll'; readonly cause: RenewalCause }
  /** `why`: the code of what keeps a renewal that is due from being made. */
  | { readonly kind: 'wait'; readonly waitMs: number; readonly why: string | undefined };

export function nextStep(situation: RenewalSituation, now: Moment): RenewalStep {
  const { setback, token } = situation;
  const cause = causeToRenew(situation, now);
  if (cause === undefined) return { kind: 'wait', waitMs: untilDueMs(situation, now), why: undefined };
  if (token.kind === 'fault') return wait(LOOK_EVERY_MS, token.code);
  if (cause !== 'no_key' && !prolongs(situation)) return wait(LOOK_EVERY_MS, 'token_not_renewed');
  if (setback === undefined || isOvercome(setback, token.digest, now)) return { kind: 'enroll', cause };
  return wait(setback.notBeforeMonotonicMs - now.monotonicMs, setback.code);
}

export function isUsable(record: EnrolledKeyRecord, nowMs: number): boolean {
  return record.key.status === 'active' && nowMs < record.key.expiresAtMs;
}

function causeToRenew(situation: RenewalSituation, { wallMs }: Moment): RenewalCause | undefined {
  const { current, enrolledWithDigest, token } = situation;
  if (current === undefined || !isUsable(current, wallMs)) return 'no_key';
  if (!(wallMs < dueAtMs(current, situation))) return 'near_end';
  const isOther = token.kind === 'token' && ![undefined, token.digest].includes(enrolledWithDigest);
  return isOther && prolongs(situation) ? 'token_changed' : undefined;
}

function dueAtMs(
  current: EnrolledKeyRecord,
  { refreshSkewMs, spread }: Pick<RenewalSituation, 'refreshSkewMs' | 'spread'>,
): number {
  const fromMs = refreshFromMs(current, refreshSkewMs);
  return fromMs - (current.key.expiresAtMs - fromMs) * SPREAD_SHARE * spread;
}

/** No key outlives its token. Of a token that does not say when it ends, Control may think better. */
function prolongs({ current, token }: RenewalSituation): boolean {
  if (current === undefined || token.kind === 'fault' || token.expiresAtMs === undefined) return true;
  return token.expiresAtMs >= current.key.expiresAtMs + MIN_GAIN_MS;
}

/** Another token is another question, unless nobody is there to be asked. */
function isOvercome(setback: Setback, tokenDigest: string, { monotonicMs }: Moment): boolean {
  const isAnswerToToken = setback.kind === 'refused' || setback.kind === 'denied';
  if (isAnswerToToken && setback.tokenDigest !== tokenDigest) return true;
  return monotonicMs >= setback.notBeforeMonotonicMs;
}

function untilDueMs(situation: RenewalSituation, { wallMs }: Moment): number {
  const { current } = situation;
  const dueMs = current === undefined ? LOOK_EVERY_MS : dueAtMs(current, situation) - wallMs;
  return Math.min(Math.max(Math.ceil(dueMs), 1), LOOK_EVERY_MS);
}

function wait(waitMs: number, why: string): RenewalStep {
  return { kind: 'wait', waitMs: Math.min(Math.max(Math.ceil(waitMs), 1), LOOK_EVERY_MS), why };
}

interface Pace {
  readonly firstMs: number;
  readonly mostMs: number;
}

const PACES: { readonly [K in SetbackKind]: Pace } = {
  unavailable: { firstMs: 1000, mostMs: 60_000 },
  // The run that ended with it has asked for as long as it may.
  pending: { firstMs: 30_000, mostMs: 30_000 },
  refused: { firstMs: 60_000, mostMs: 600_000 },
  denied: { firstMs: Number.POSITIVE_INFINITY, mostMs: Number.POSITIVE_INFINITY },
};
/** Part of a wait that chance takes off; of `Retry-After`, what it adds. */
const JITTER_SHARE = 0.25;

export interface Failure {
  readonly kind: SetbackKind;
  /** Setbacks in a row, this one included. */
  readonly count: number;
  readonly retryAfterMs: number | undefined;
}

/** How long to leave it at that: twice as long each time, never sooner than Control wishes. @param random 0 to below 1 */
export function setbackWaitMs({ kind, count, retryAfterMs = 0 }: Failure, random: number): number {
  const { firstMs, mostMs } = PACES[kind];
  const backOffMs = Math.min(firstMs * 2 ** Math.min(count - 1, 30), mostMs) * (1 - JITTER_SHARE * random);
  return Math.max(backOffMs, retryAfterMs * (1 + JITTER_SHARE * random));
}

/** Where no key is in place, verifiers are not waited for longer: one that is gone must not keep a pod from starting. */
const MAX_FIRST_PROPAGATION_MS = 30_000;

/** How long a new key may wait for verifiers to know it, before it is put in the place of the old one all the same. */
export function propagationWaitMs(
  next: EnrolledKeyRecord,
  old: EnrolledKeyRecord | undefined,
  nowMs: number,
): number {
  const restMs = Math.max(next.key.expiresAtMs - nowMs, 0);
  if (old === undefined || !isUsable(old, nowMs)) return Math.min(MAX_FIRST_PROPAGATION_MS, restMs / 4);
  return Math.min(old.key.expiresAtMs - nowMs, restMs) / 2;
}
