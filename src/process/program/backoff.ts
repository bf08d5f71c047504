/** Exponential backoff that counts the failures itself. */

import {
  boundedWaitMs,
  type ExponentialWait,
  exponentialWaitMs,
  type Urgency,
} from '../../protocol/retry-wait.ts';

export interface BackoffOptions extends ExponentialWait {
  /** Urgency of the credential that the next attempt renews; default: it never expires. */
  readonly urgency?: () => Urgency;
}

/** For {@link BackoffOptions.random}. */
export const NO_JITTER = () => 0;

/** Maximum wait that a server may request with `Retry-After`, even if nothing expires. */
export const MAX_RETRY_AFTER_MS = 30_000;

export class Backoff {
  readonly #options: BackoffOptions;
  #failures = 0;
  #notBeforeMs = 0;

  constructor(options: BackoffOptions) {
    this.#options = options;
  }

  /** Whether the last wait is over. */
  get isDue(): boolean {
    return performance.now() >= this.#notBeforeMs;
  }

  /**
   * Records a failure.
   * @param retryAfterMs wait that the server requested
   * @returns milliseconds to wait
   */
  failed(retryAfterMs = 0): number {
    const { urgency } = this.#options;
    const ownMs = exponentialWaitMs(++this.#failures, this.#options);
    const wishedMs = Math.max(ownMs, Math.min(retryAfterMs, MAX_RETRY_AFTER_MS));
    const waitMs = urgency === undefined ? wishedMs : boundedWaitMs(wishedMs, urgency());
    this.#notBeforeMs = performance.now() + waitMs;
    return waitMs;
  }

  reset(): void {
    this.#failures = 0;
    this.#notBeforeMs = 0;
  }
}
