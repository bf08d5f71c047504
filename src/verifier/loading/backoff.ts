/**
 * Exponential backoff: each wait is twice the one before, up to a limit. With jitter, so that a thousand verifiers do not
 * return in the same moment to a server that has just recovered, each wait is cut by up to half.
 */
export interface BackoffOptions {
  readonly firstMs: number;
  readonly maxMs: number;
  /** 0 to 1; default `Math.random`. */
  readonly random?: () => number;
}

/** For {@link BackoffOptions.random}. */
export const NO_JITTER = () => 0;

/** Longest wait that a server may ask for: a mistake in its `Retry-After` must not silence a verifier for a day. */
export const MAX_RETRY_AFTER_MS = 300_000;

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
   * Counts a failure.
   * @param retryAfterMs what the server asked for: the wait is at least that
   * @returns milliseconds to wait
   */
  failed(retryAfterMs = 0): number {
    const { maxMs, random = Math.random } = this.#options;
    const ownMs = this.#nextMs * (1 - random() / 2);
    this.#nextMs = Math.min(this.#nextMs * 2, maxMs);
    const waitMs = Math.max(ownMs, Math.min(retryAfterMs, MAX_RETRY_AFTER_MS));
    this.#notBeforeMs = performance.now() + waitMs;
    return waitMs;
  }

  reset(): void {
    this.#nextMs = this.#options.firstMs;
    this.#notBeforeMs = 0;
  }
}
