/**
 * A workload's enrollment state, stored beside the key file. It contains no secret, and enough to resume after any
 * interruption. Source: docs/cli.md "The state file".
 */
import type { IssuedKey } from './issued-key.ts';

/** The Control and the policy of an enrollment. */
export interface EnrollmentTarget {
  /** As signed. */
  readonly controlUrl: string;
  /** The opaque policy reference. */
  readonly policy: string;
}

/** An issued key. */
export interface EnrolledKeyRecord {
  readonly target: EnrollmentTarget;
  readonly enrollmentId: string;
  /** When Control accepted the submission. */
  readonly createdAtMs: number;
  readonly key: IssuedKey;
}

/** An enrollment without an outcome yet. */
export type Attempt =
  | {
      /** The submission may have reached Control: the same one is repeated until that is known. */
      readonly kind: 'submitting';
      readonly challengeId: string;
      readonly authSite: string;
      /** Made by `sealChallenge`. */
      readonly sealedChallenge: string;
    }
  | {
      /** Control has the submission: the client polls it and never submits again. */
      readonly kind: 'submitted';
      readonly enrollmentId: string;
      readonly authSite: string;
      readonly createdAtMs: number;
    };

export interface EnrollmentState {
  /** RFC 7638 thumbprint of the key. */
  readonly keyThumbprint: string;
  /** Target of the last run and of its attempt. */
  readonly target: EnrollmentTarget;
  readonly enrolled: EnrolledKeyRecord | undefined;
  readonly attempt: Attempt | undefined;
  /** An attempt was abandoned without an outcome: Control may have issued something to the key. */
  readonly mayBeIssued?: true | undefined;
}

/** Storage of the state. */
export interface EnrollmentStates {
  /** Undefined without a stored state. */
  load(): Promise<EnrollmentState | undefined>;
  /** Replaces the state atomically and durably. */
  save(state: EnrollmentState): Promise<void>;
}

export function isSameTarget(a: EnrollmentTarget, b: EnrollmentTarget): boolean {
  return a.controlUrl === b.controlUrl && a.policy === b.policy;
}

/** Maximum share of a key's lifetime between renewal and expiry. */
const MAX_SKEW_SHARE = 0.15;
/** That share of the maximum key lifetime, 24 h (specification "Limits"). */
export const MAX_REFRESH_SKEW_MS = 12_960_000;

/** When renewal of the key is due: `refreshSkewMs` before it expires, at most 15 % of its lifetime. */
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
