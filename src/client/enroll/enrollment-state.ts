/**
 * What a workload remembers of its enrollment beside the key file: nothing that is secret, and enough to go on where a run
 * ended, however it ended. Source: docs/cli.md "The state file".
 */
import type { IssuedKey } from './issued-key.ts';

/** What an enrollment is under. */
export interface EnrollmentTarget {
  /** As signed. */
  readonly controlUrl: string;
  /** The opaque policy reference. */
  readonly policy: string;
}

/** A key that was issued. */
export interface EnrolledKeyRecord {
  readonly target: EnrollmentTarget;
  readonly enrollmentId: string;
  /** When Control accepted the submission. */
  readonly createdAtMs: number;
  readonly key: IssuedKey;
}

/** An enrollment that was begun and has no outcome yet. */
export type Attempt =
  | {
      /** It may have reached Control: the same submission is made again until that is known. */
      readonly kind: 'submitting';
      readonly challengeId: string;
      readonly authSite: string;
      /** Made by `sealChallenge`. */
      readonly sealedChallenge: string;
    }
  | {
      /** Control has it: it is asked for, never submitted anew. */
      readonly kind: 'submitted';
      readonly enrollmentId: string;
      readonly authSite: string;
      readonly createdAtMs: number;
    };

export interface EnrollmentState {
  /** RFC 7638 thumbprint of the key that all this is about. */
  readonly keyThumbprint: string;
  /** Of the last run that began; the attempt's. */
  readonly target: EnrollmentTarget;
  readonly enrolled: EnrolledKeyRecord | undefined;
  readonly attempt: Attempt | undefined;
  /** An attempt was given up without its outcome: Control may have issued something to the key all the same. */
  readonly mayBeIssued?: true | undefined;
}

/** Where the state is kept. */
export interface EnrollmentStates {
  /** Undefined when there is none. */
  load(): Promise<EnrollmentState | undefined>;
  /** Whole and durable when it resolves; whoever reads meanwhile sees the old or the new one. */
  save(state: EnrollmentState): Promise<void>;
}

export function isSameTarget(a: EnrollmentTarget, b: EnrollmentTarget): boolean {
  return a.controlUrl === b.controlUrl && a.policy === b.policy;
}

/** Most of a key's life that may lie between renewal and expiry. */
const MAX_SKEW_SHARE = 0.15;
/** That share of the longest life of a key, 24 h (specification "Limits"). */
export const MAX_REFRESH_SKEW_MS = 12_960_000;

/** From this moment on the key should be enrolled again: `refreshSkewMs` before it expires, at most 15 % of its life. */
export function refreshFromMs(
  { createdAtMs, key }: { readonly createdAtMs: number; readonly key: Pick<IssuedKey, 'expiresAtMs'> },
  refreshSkewMs: number,
): number {
  return key.expiresAtMs - Math.min(refreshSkewMs, maxRefreshSkewMs({ createdAtMs, key }));
}

/** The longest `refreshSkewMs` that has an effect on this key. */
export function maxRefreshSkewMs({
  createdAtMs,
  key,
}: {
  readonly createdAtMs: number;
  readonly key: Pick<IssuedKey, 'expiresAtMs'>;
}): number {
  return Math.max(key.expiresAtMs - createdAtMs, 0) * MAX_SKEW_SHARE;
}

/** Whether the key needs no new enrollment. */
export function isCurrent(record: EnrolledKeyRecord, refreshSkewMs: number, nowMs: number): boolean {
  return record.key.status === 'active' && nowMs < refreshFromMs(record, refreshSkewMs);
}
