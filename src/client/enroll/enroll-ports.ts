/** Inputs and dependencies of enrollment. */

import type { Redacted } from '../../protocol/redacted.ts';
import type { SigningKey } from '../../protocol/signing.ts';
import type { ControlClient } from './control-client.ts';
import type { EnrolledKeyRecord, EnrollmentStates, EnrollmentTarget } from './enrollment-state.ts';

export interface EnrollRequest {
  readonly target: EnrollmentTarget;
  /** Such as `oidc_jwks`. */
  readonly provider: string;
  /** Ed25519; already stored on disk. */
  readonly key: SigningKey;
  /** False: polls once and returns. */
  readonly waitsForActivation: boolean;
  /** Timeout of the whole run; no request starts after it. */
  readonly timeoutMs: number;
  /** Maximum time of one request. */
  readonly requestTimeoutMs: number;
  readonly pollIntervalMs: number;
  /** Number of retries of the challenge request and of the submission. */
  readonly submitRetries: number;
  readonly refreshSkewMs: number;
  /** Enrolls although the state has a current key. An enrollment in progress is still resumed. */
  readonly forcesReenrollment: boolean;
}

export type EnrollEvent =
  /** Control did not answer whether the enrolled key was revoked. */
  | { readonly kind: 'unconfirmed'; readonly fault: string }
  | { readonly kind: 'resumed'; readonly attempt: 'submitting' | 'submitted' }
  | {
      readonly kind: 'retrying';
      readonly what: 'challenge' | 'submission';
      readonly fault: string;
      readonly waitMs: number;
    }
  | {
      readonly kind: 'waiting';
      readonly enrollmentId: string;
      readonly elapsedMs: number;
      readonly fault: string | undefined;
    };

export interface EnrollPorts {
  /** Client for the request's target and key. */
  readonly control: ControlClient;
  readonly states: EnrollmentStates;
  /** Reads the current projected token. @throws the error of reading it */
  readonly readToken: () => Promise<Redacted<string>>;
  /** The wall clock. */
  readonly nowMs: () => number;
  /** The monotonic clock. */
  readonly monotonicMs: () => number;
  /** Resolves after the time, or at once when stopped. */
  readonly sleep: (waitMs: number, stop: AbortSignal) => Promise<void>;
  /** A random number from 0 to below 1. */
  readonly random: () => number;
  readonly stop: AbortSignal;
  readonly tell: (event: EnrollEvent) => void;
}

export interface EnrollResult {
  /** `cached`: the state has a current key, and Control did not report it as revoked. */
  readonly kind: 'cached' | 'enrolled';
  readonly record: EnrolledKeyRecord;
}
