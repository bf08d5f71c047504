/**
 * The latest issued-at that was consumed lately. A fence that goes up must cover it, also when the clocks that would
 * set the fence have gone back meanwhile.
 */

/** Longer than any proof that was consumed can be good again. */
const GENERATION_MS = 600_000;

export class LatestIssued {
  readonly #monotonicMs: () => number;
  #currentSeconds = 0;
  #previousSeconds = 0;
  #turnMs: number;

  /** @param monotonicMs a clock that no one sets; default: the process's own */
  constructor(monotonicMs: () => number = () => performance.now()) {
    this.#monotonicMs = monotonicMs;
    this.#turnMs = monotonicMs() + GENERATION_MS;
  }

  note(issuedAtSeconds: number): void {
    if (issuedAtSeconds > this.#currentSeconds) this.#currentSeconds = issuedAtSeconds;
  }

  /** Of the last ten minutes, and of up to ten more; 0 when there was none. */
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
