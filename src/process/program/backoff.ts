/**
 * Exponential backoff with jitter: each wait is twice the one before, up to a limit. Jitter cuts each wait by up to
 * half, so that a thousand verifiers do not return at once to a server that has just recovered.
 */

import { boundedWaitMs, type Urgency } from '../../protocol/bounded-wait.ts';

export interface BackoffOptions {
  readonly firstMs: number;
  readonly maxMs: number;
  /** 0 to 1; default `Math.random`. */
  readonly random?: () => number;
  /** Of what the next attempt renews; default: nothing ends. */
  readonly urgency?: () => Urgency;
}

/** For {@link BackoffOptions.random}. */
export const NO_JITTER = () => 0;

/** Maximum wait that a server may request with `Retry-After`, even where nothing ends. */
export const MAX_RETRY_AFTER_MS = 30_000;

export class Backoff {
  readonly #options: BackoffOptions;
  #nextMs: number;
  #notBeforeMs = 0;

  constructor(options: BackoffOptions) {
    this.#options = options;
    this.#nextMs = options.firstMs;
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
    const { maxMs, random = Math.random, urgency } = this.#options;
    const ownMs = this.#nextMs * (1 - random() / 2);
    this.#nextMs = Math.min(this.#nextMs * 2, maxMs);
    const wishedMs = Math.max(ownMs, Math.min(retryAfterMs, MAX_RETRY_AFTER_MS));
    const waitMs = urgency === undefined ? wishedMs : boundedWaitMs(wishedMs, urgency());
    this.#notBeforeMs = performance.now() + waitMs;
    return waitMs;
  }

  reset(): void {
    this.#nextMs = this.#options.firstMs;
    this.#notBeforeMs = 0;
  }
}
