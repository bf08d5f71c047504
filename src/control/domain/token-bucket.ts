/** A token bucket: allows a burst, then one token for each refill interval. Its clock is an argument. */
export interface TokenBucketOptions {
  readonly burst: number;
  readonly refillMs: number;
}

export class TokenBucket {
  readonly #options: TokenBucketOptions;
  #tokens: number;
  #countedAtMs: number | undefined;

  constructor(options: TokenBucketOptions) {
    this.#options = options;
    this.#tokens = options.burst;
  }

  /** Takes one token. @returns whether there was one */
  take(nowMs: number): boolean {
    this.#refill(nowMs);
    if (!(this.#tokens >= 1)) return false;
    this.#tokens -= 1;
    return true;
  }

  /** Time until there is a token. */
  waitMs(nowMs: number): number {
    this.#refill(nowMs);
    return this.#tokens >= 1 ? 0 : Math.ceil((1 - this.#tokens) * this.#options.refillMs);
  }

  #refill(nowMs: number): void {
    const { burst, refillMs } = this.#options;
    // A clock that was set back adds nothing; counting continues from its new time.
    const elapsedMs = Math.max(0, nowMs - (this.#countedAtMs ?? nowMs));
    this.#countedAtMs = nowMs;
    this.#tokens = Math.min(burst, this.#tokens + elapsedMs / refillMs);
  }
}
