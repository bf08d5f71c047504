/** Compares the validity periods of passport and proof with the explained moment. */
import { formatTime } from '../../protocol/rfc3339.ts';
import type { Explanation } from '../../verifier/decision/explain/explain.ts';

/** Seconds. `ahead`: from the moment to a later start; `late`: from an earlier end to the moment. Both 0 while valid. */
export interface ClockReading {
  readonly starts_at: string;
  readonly ends_at: string;
  /** Time since the start; negative before the start. */
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

/** Shows a time beyond the calendar's range, which a transcript can contain, as its seconds. */
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
