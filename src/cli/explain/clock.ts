/** How the clocks that made passport and proof stand to the moment that is explained. */
import { formatTime } from '../../bundle/format/times.ts';
import type { Explanation } from '../../verifier/decision/explain/explain.ts';

/** Seconds. `ahead`: the start lies after the moment; `late`: the end lies before it. Both 0 while it is valid. */
export interface ClockReading {
  readonly starts_at: string;
  readonly ends_at: string;
  /** Time since the start; below zero: the start is still to come. */
  readonly age_seconds: number;
  readonly ahead_seconds: number;
  readonly late_seconds: number;
}

export function clockMembers({ credentials, nowSeconds, snapshot }: Explanation) {
  if (credentials === undefined || snapshot === undefined) return null;
  const { claims } = credentials.passport;
  const { expiresAtSeconds, issuedAtSeconds } = credentials.proof.transcript;
  const passportStart = Math.max(claims.issuedAtSeconds, claims.notBeforeSeconds ?? 0);
  return {
    skew_seconds: snapshot.skewSeconds,
    passport: reading(passportStart, claims.expiresAtSeconds, nowSeconds),
    proof: reading(issuedAtSeconds, expiresAtSeconds, nowSeconds),
  };
}

/** Moments that a transcript may name and that no calendar holds are shown as their seconds. */
export function shownTime(seconds: number): string {
  return seconds < END_OF_CALENDAR_SECONDS ? formatTime(seconds) : String(seconds);
}

/** The year 10000. */
const END_OF_CALENDAR_SECONDS = 253_402_300_800;

function reading(startSeconds: number, endSeconds: number, nowSeconds: number): ClockReading {
  return {
    starts_at: shownTime(startSeconds),
    ends_at: shownTime(endSeconds),
    age_seconds: nowSeconds - startSeconds,
    ahead_seconds: Math.max(0, startSeconds - nowSeconds),
    late_seconds: Math.max(0, nowSeconds - endSeconds),
  };
}
