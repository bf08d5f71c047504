/**
 * Decides when the agent renews a key. The decision is a pure function of the current situation, so clock changes and machine
 * sleep need no special handling. Source: docs/operate/workloads.md "When it enrolls".
 */

import { boundedWaitMs, exponentialWaitMs, type Urgency } from '../../protocol/retry-wait.ts';
import { type EnrolledKeyRecord, refreshFromMs } from '../enroll/enrollment-state.ts';

/** Maximum interval between checks. New tokens, clock changes and machine wake-ups are noticed within it. */
export const CHECK_INTERVAL_MS = 10_000;
/** Minimum gain of lifetime. For less, a renewal is not worth one of the token's limited enrollments. */
const MIN_GAIN_MS = 60_000;
/** Maximum share of the time between renewal and expiry by which a renewal is earlier, so that pods do not renew all at once. */
const SPREAD_SHARE = 0.25;

export interface Moment {
  /** Wall clock, for the expiry of keys and tokens. */
  readonly wallMs: number;
  /** Monotonic clock, for waits. */
  readonly monotonicMs: number;
}

/** Current content of the token file. */
export type TokenContent =
  | {
      readonly kind: 'token';
      /** Identifies the token, and cannot be used in its place. */
      readonly digest: string;
      /** Undefined for a token without an expiry. */
      readonly expiresAtMs: number | undefined;
    }
  | { readonly kind: 'fault'; readonly code: string };

export type FailureKind =
  /** Control is unreachable or asks to retry later. */
  | 'unavailable'
  /** The enrollment waits for approval. */
  | 'pending'
  /** Control rejected the enrollment, and will again until a setting changes. */
  | 'refused'
  /** An operator denied the enrollment with this token. */
  | 'denied';

/** Failure of the last attempt. */
export interface LastFailure {
  readonly kind: FailureKind;
  readonly code: string;
  /** Digest of the token of that attempt; undefined if there was none. */
  readonly tokenDigest: string | undefined;
  readonly notBeforeMonotonicMs: number;
}

export interface RenewalSituation {
  /** The installed key, unless it is revoked or belongs to another Control or policy. */
  readonly current: EnrolledKeyRecord | undefined;
  readonly token: TokenContent;
  /** Digest of the token with which the installed key was enrolled; undefined if unknown. */
  readonly enrolledWithDigest: string | undefined;
  readonly lastFailure: LastFailure | undefined;
  readonly refreshSkewMs: number;
  /** A random number from 0 to below 1 for each key. */
  readonly spread: number;
}

export type RenewalCause = 'no_key' | 'token_changed' | 'near_end';

export type RenewalStep =
  | { readonly kind: 'enroll'; readonly cause: RenewalCause }
  /** `why`: code of what delays a renewal that is due. */
  | { readonly kind: 'wait'; readonly waitMs: number; readonly why: string | undefined };

export function nextStep(situation: RenewalSituation, now: Moment): RenewalStep {
  const { lastFailure, token } = situation;
  const cause = renewalCause(situation, now);
  if (cause === undefined) return { kind: 'wait', waitMs: untilDueMs(situation, now), why: undefined };
  if (token.kind === 'fault') return wait(CHECK_INTERVAL_MS, token.code);
  if (cause !== 'no_key' && !outlivesCurrent(situation)) return wait(CHECK_INTERVAL_MS, 'token_not_renewed');
  if (lastFailure === undefined || mayRetry(lastFailure, token.digest, now)) return { kind: 'enroll', cause };
  return wait(lastFailure.notBeforeMonotonicMs - now.monotonicMs, lastFailure.code);
}

export function isUsable(record: EnrolledKeyRecord, nowMs: number): boolean {
  return record.key.status === 'active' && nowMs < record.key.expiresAtMs;
}

function renewalCause(situation: RenewalSituation, { wallMs }: Moment): RenewalCause | undefined {
  const { current, enrolledWithDigest, token } = situation;
  if (current === undefined || !isUsable(current, wallMs)) return 'no_key';
  if (!(wallMs < dueAtMs(current, situation))) return 'near_end';
  const isOtherToken = token.kind === 'token' && ![undefined, token.digest].includes(enrolledWithDigest);
  return isOtherToken && outlivesCurrent(situation) ? 'token_changed' : undefined;
}

function dueAtMs(
  current: EnrolledKeyRecord,
  { refreshSkewMs, spread }: Pick<RenewalSituation, 'refreshSkewMs' | 'spread'>,
): number {
  const fromMs = refreshFromMs(current, refreshSkewMs);
  return fromMs - (current.key.expiresAtMs - fromMs) * SPREAD_SHARE * spread;
}

/** A key never outlives its token. For a token without an expiry, Control decides. */
function outlivesCurrent({ current, token }: RenewalSituation): boolean {
  if (current === undefined || token.kind === 'fault' || token.expiresAtMs === undefined) return true;
  return token.expiresAtMs >= current.key.expiresAtMs + MIN_GAIN_MS;
}

/** A new token can succeed at once after a rejection. It does not help while Control is unreachable. */
function mayRetry(lastFailure: LastFailure, tokenDigest: string, { monotonicMs }: Moment): boolean {
  const isAnswerToToken = lastFailure.kind === 'refused' || lastFailure.kind === 'denied';
  if (isAnswerToToken && lastFailure.tokenDigest !== tokenDigest) return true;
  return monotonicMs >= lastFailure.notBeforeMonotonicMs;
}

function untilDueMs(situation: RenewalSituation, { wallMs }: Moment): number {
  const { current } = situation;
  const dueMs = current === undefined ? CHECK_INTERVAL_MS : dueAtMs(current, situation) - wallMs;
  return Math.min(Math.max(Math.ceil(dueMs), 1), CHECK_INTERVAL_MS);
}

function wait(waitMs: number, why: string): RenewalStep {
  return { kind: 'wait', waitMs: Math.min(Math.max(Math.ceil(waitMs), 1), CHECK_INTERVAL_MS), why };
}

interface Pace {
  readonly firstMs: number;
  readonly maxMs: number;
}

const PACES: { readonly [K in FailureKind]: Pace } = {
  unavailable: { firstMs: 1000, maxMs: 60_000 },
  // A run that ends as pending has already polled until its timeout.
  pending: { firstMs: 30_000, maxMs: 30_000 },
  refused: { firstMs: 60_000, maxMs: 600_000 },
  denied: { firstMs: Number.POSITIVE_INFINITY, maxMs: Number.POSITIVE_INFINITY },
};
/** Maximum share that jitter takes off a wait, and that it adds to `Retry-After`. */
const JITTER_SHARE = 0.25;

export interface Failure {
  readonly kind: FailureKind;
  /** Number of consecutive failures of this kind, including this one. */
  readonly count: number;
  readonly retryAfterMs: number | undefined;
}

/** Time that enrollment and the distribution of a key to verifiers take. */
const RENEW_MS = 60_000;
/** Maximum wait when less than {@link RENEW_MS} is left of the key. */
const LATE_MS = 10_000;

/** How long the installed key remains valid. @param current undefined without a usable key */
export function keyUrgency(current: EnrolledKeyRecord | undefined, nowMs: number): Urgency {
  const leftMs = current !== undefined && isUsable(current, nowMs) ? current.key.expiresAtMs - nowMs : 0;
  return { leftMs, renewMs: RENEW_MS, lateMs: LATE_MS };
}

/**
 * The wait after a failure: exponential backoff or `Retry-After`, but no longer than the installed key allows. Without
 * a usable key, only the backoff and a short `Retry-After` count. After a denial the next attempt needs another token.
 * @param random 0 to below 1
 */
export function retryWaitMs(
  { kind, count, retryAfterMs = 0 }: Failure,
  urgency: Urgency,
  random: number,
): number {
  const backOffMs = exponentialWaitMs(count, {
    ...PACES[kind],
    jitterShare: JITTER_SHARE,
    random: () => random,
  });
  if (kind === 'denied') return backOffMs;
  const wantedMs = Math.max(backOffMs, retryAfterMs * (1 + JITTER_SHARE * random));
  const { lateMs, leftMs } = urgency;
  return boundedWaitMs(wantedMs, { ...urgency, lateMs: leftMs > 0 ? lateMs : Math.max(backOffMs, lateMs) });
}

/** Maximum wait for verifiers without an installed key: a missing verifier must not prevent a pod from starting. */
const MAX_FIRST_PROPAGATION_MS = 30_000;

/** How long a new key waits for confirmation by all verifiers before the agent installs it anyway. */
export function propagationWaitMs(
  next: EnrolledKeyRecord,
  old: EnrolledKeyRecord | undefined,
  nowMs: number,
): number {
  const restMs = Math.max(next.key.expiresAtMs - nowMs, 0);
  if (old === undefined || !isUsable(old, nowMs)) return Math.min(MAX_FIRST_PROPAGATION_MS, restMs / 4);
  return Math.min(old.key.expiresAtMs - nowMs, restMs) / 2;
}
