/** One enrollment run: its request, dependencies, persisted state and remaining time. */

import type { Redacted } from '../../protocol/redacted.ts';
import { boundedWaitMs } from '../../protocol/retry-wait.ts';
import type { SigningKey } from '../../protocol/signing.ts';
import type { ControlCall, ControlClient } from './control-client.ts';
import type {
  Attempt,
  EnrolledKeyRecord,
  EnrollmentState,
  EnrollmentStates,
  EnrollmentTarget,
} from './enrollment-state.ts';
import { MAX_RETRY_AFTER_MS } from './pacing.ts';

/** Inputs and dependencies of enrollment. */
export interface EnrollRequest {
  readonly target: EnrollmentTarget;
  /** Name of the enrollment provider, such as `oidc_jwks`. */
  readonly provider: string;
  /** Ed25519; already stored on disk. */
  readonly key: SigningKey;
  /** False to poll once and return. */
  readonly waitsForActivation: boolean;
  /** Timeout of the whole run; no request starts after it. */
  readonly timeoutMs: number;
  /** Maximum time of one request. */
  readonly requestTimeoutMs: number;
  readonly pollIntervalMs: number;
  /** Maximum wait for Control's `Retry-After` at this moment; default {@link MAX_RETRY_AFTER_MS}. */
  readonly maxRetryAfterMs?: () => number;
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
  readonly report: (event: EnrollEvent) => void;
}

export interface EnrollResult {
  /** `cached`: the state has a current key, and Control did not report it as revoked; its profiles are renewed. */
  readonly kind: 'cached' | 'enrolled';
  readonly record: EnrolledKeyRecord;
}

/** Minimum timeout of a request, even if the deadline is nearer. */
const MIN_REQUEST_MS = 250;

export class EnrollRun {
  readonly request: EnrollRequest;
  readonly ports: EnrollPorts;
  readonly #startMs: number;
  #state: EnrollmentState;

  constructor(request: EnrollRequest, ports: EnrollPorts, state: EnrollmentState) {
    this.request = request;
    this.ports = ports;
    this.#startMs = ports.monotonicMs();
    this.#state = state;
  }

  get attempt(): Attempt | undefined {
    return this.#state.attempt;
  }

  get enrolled(): EnrolledKeyRecord | undefined {
    return this.#state.enrolled;
  }

  get isStopped(): boolean {
    return this.ports.stop.aborted;
  }

  get elapsedMs(): number {
    return this.ports.monotonicMs() - this.#startMs;
  }

  get remainingMs(): number {
    return this.request.timeoutMs - this.elapsedMs;
  }

  /** Control's `Retry-After`, limited so that a last request fits into the remaining time. */
  retryAfterMs(verdict: { readonly kind: string; readonly retryAfterMs?: number | undefined }): number {
    const { maxRetryAfterMs, requestTimeoutMs } = this.request;
    const wantedMs = Math.min(verdict.retryAfterMs ?? 0, maxRetryAfterMs?.() ?? MAX_RETRY_AFTER_MS);
    return boundedWaitMs(wantedMs, { leftMs: this.remainingMs, renewMs: requestTimeoutMs, lateMs: 0 });
  }

  get call(): ControlCall {
    const timeoutMs = Math.max(Math.min(this.request.requestTimeoutMs, this.remainingMs), MIN_REQUEST_MS);
    return { timeoutMs: Math.ceil(timeoutMs), stop: this.ports.stop };
  }

  /** Saves the state with this attempt, or without one. */
  async saveAttempt(attempt: Attempt | undefined): Promise<void> {
    await this.#save({ ...this.#state, attempt });
  }

  /** As {@link saveAttempt} without an attempt, and records that the abandoned one may have succeeded. */
  async giveUpAttempt(): Promise<void> {
    await this.#save({ ...this.#state, attempt: undefined, mayBeIssued: true });
  }

  /** Saves the issued key, which completes the attempt. */
  async saveKey(enrolled: EnrolledKeyRecord): Promise<void> {
    await this.#save({ ...this.#state, enrolled, attempt: undefined });
  }

  async #save(state: EnrollmentState): Promise<void> {
    await this.ports.states.save(state);
    this.#state = state;
  }

  sleep(waitMs: number): Promise<void> {
    return this.ports.sleep(waitMs, this.ports.stop);
  }
}
