/** Exponential backoff with jitter that respects a short `Retry-After`. */

/** Maximum wait between two requests, unless the first wait is longer. */
const MAX_WAIT_MS = 30_000;
/** Maximum wait that `Retry-After` may request. */
export const MAX_RETRY_AFTER_MS = 60_000;
const GROWTH = 1.5;
/** Maximum share of a wait that the jitter takes off. */
const JITTER_SHARE = 0.25;

export class Pacing {
  readonly #mostMs: number;
  readonly #random: () => number;
  #waitMs: number;

  /** @param random 0 to below 1 */
  constructor(firstMs: number, random: () => number) {
    this.#waitMs = firstMs;
    this.#mostMs = Math.max(firstMs, MAX_WAIT_MS);
    this.#random = random;
  }

  /** The next wait in whole milliseconds. @param atLeastMs from `Retry-After` */
  next(atLeastMs = 0): number {
    const spread = this.#waitMs * JITTER_SHARE * this.#random();
    const waitMs = Math.ceil(atLeastMs > this.#waitMs ? atLeastMs + spread : this.#waitMs - spread);
    this.#waitMs = Math.min(this.#waitMs * GROWTH, this.#mostMs);
    return Math.max(waitMs, Math.ceil(atLeastMs));
  }
}
