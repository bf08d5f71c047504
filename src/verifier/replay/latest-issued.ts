/**
 * Tracks the latest issued-at that was consumed recently. A new fence must cover it, even when the clocks that would
 * set the fence have gone back meanwhile.
 */

/** Longer than a consumed proof can remain valid. */
const GENERATION_MS = 600_000;

export class LatestIssued {
  readonly #monotonicMs: () => number;
  #currentSeconds = 0;
  #previousSeconds = 0;
  #turnMs: number;

  /** @param monotonicMs a monotonic clock; default: the process's own */
  constructor(monotonicMs: () => number = () => performance.now()) {
    this.#monotonicMs = monotonicMs;
    this.#turnMs = monotonicMs() + GENERATION_MS;
  }

  note(issuedAtSeconds: number): void {
    if (issuedAtSeconds > this.#currentSeconds) this.#currentSeconds = issuedAtSeconds;
  }

  /** The latest of the last ten to twenty minutes; 0 when there was none. */
  get seconds(): number {
    const nowMs = this.#monotonicMs();
    if (nowMs >= this.#turnMs) {
      const isLongAgo = nowMs >= this.#turnMs + GENERATION_MS;
      this.#previousSeconds = isLongAgo ? 0 : this.#currentSeconds;
      this.#currentSeconds = 0;
      this.#turnMs = nowMs + GENERATION_MS;
    }
    return Math.max(this.#currentSeconds, this.#previousSeconds);
  }
}
