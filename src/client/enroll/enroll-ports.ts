/** What enrolling is told, and what it needs of the world around it. */
import type { SigningKey } from '../../protocol/signing.ts';
import type { ControlClient } from './control-client.ts';
import type { EnrolledKeyRecord, EnrollmentStates, EnrollmentTarget } from './enrollment-state.ts';
import type { SecretText } from './secret-text.ts';

export interface EnrollRequest {
  readonly target: EnrollmentTarget;
  /** Such as `oidc_jwks`. */
  readonly provider: string;
  /** Ed25519; on the disk already. */
  readonly key: SigningKey;
  /** False: asks once and leaves. */
  readonly waitsForActivation: boolean;
  /** For the whole run; no question begins after it. */
  readonly timeoutMs: number;
  /** For one exchange, at most. */
  readonly requestTimeoutMs: number;
  readonly pollIntervalMs: number;
  /** How often a challenge is asked for again, and a submission made again, after a fault. */
  readonly submitRetries: number;
  readonly refreshSkewMs: number;
  /** Enrolls although the state holds a current key. An enrollment under way is gone on with all the same. */
  readonly forcesReenrollment: boolean;
}

export type EnrollEvent =
  /** Control did not say whether the key that the state holds was revoked. */
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
  /** For the request's target and key. */
  readonly control: ControlClient;
  readonly states: EnrollmentStates;
  /** The projected token as it is now. @throws whatever reading it fails with */
  readonly readToken: () => Promise<SecretText>;
  /** The wall clock. */
  readonly nowMs: () => number;
  /** Never goes back. */
  readonly monotonicMs: () => number;
  /** Resolves after the time, or at once when stopped. */
  readonly sleep: (waitMs: number, stop: AbortSignal) => Promise<void>;
  /** 0 to below 1. */
  readonly random: () => number;
  readonly stop: AbortSignal;
  readonly tell: (event: EnrollEvent) => void;
}

export interface EnrollResult {
  /** `cached`: the state held a current key, and Control did not say otherwise. */
  readonly kind: 'cached' | 'enrolled';
  readonly record: EnrolledKeyRecord;
}
