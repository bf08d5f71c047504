/**
 * How long to wait after failures: twice as long each time, up to a limit, and each wait cut at random by up to half, so
 * that a thousand verifiers do not come back to a Control that has just recovered in the same moment.
 */
export interface RetryDelayOptions {
  readonly firstMs: number;
  readonly mostMs: number;
  /** 0 to 1; default `Math.random`. */
  readonly random?: () => number;
}

/** Longest `Retry-After` that is honoured: a slip in it must not silence a verifier for a day. */
export const MOST_RETRY_AFTER_MS = 300_000;

export class RetryDelay {
  readonly #options: RetryDelayOptions;
  #nextMs: number;

  constructor(options: RetryDelayOptions) {
    this.#options = options;
    this.#nextMs = options.firstMs;
  }

  /**
   * Counts a failure.
   * @param retryAfterMs what the other side asked for: not less than that
   * @returns milliseconds to wait
   */
  failed(retryAfterMs = 0): number {
    const { mostMs, random = Math.random } = this.#options;
    const waitMs = this.#nextMs * (1 - random() / 2);
    this.#nextMs = Math.min(this.#nextMs * 2, mostMs);
    return Math.max(waitMs, Math.min(retryAfterMs, MOST_RETRY_AFTER_MS));
  }

  reset(): void {
    this.#nextMs = this.#options.firstMs;
  }
}

/**
 * `Retry-After` (RFC 9110 section 10.2.3): seconds, or a date.
 * @returns milliseconds, not negative; undefined for anything else
 */
export function parseRetryAfter(value: string | undefined, nowMs: number): number | undefined {
  if (value === undefined) return undefined;
  if (/^[0-9]{1,9}$/.test(value)) return Number(value) * 1000;
  // Date.parse also takes what is no HTTP date, such as a bare year.
  const date = /^[A-Z][a-z]{2}, [0-9]{2} [A-Z][a-z]{2} [0-9]{4} .* GMT$/.test(value)
    ? Date.parse(value)
    : NaN;
  return Number.isNaN(date) ? undefined : Math.max(0, date - nowMs);
}
