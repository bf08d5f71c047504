/**
 * Rate limit on fetches of one key set: a burst of two, then one every 40 s, so at most three in any 60 s.
 * A token bucket; its clock is an argument. Source: docs/control.md "Sources and tokens".
 */

const BURST = 2;
const REFILL_MS = 40_000;

export class FetchBudget {
  #credit = BURST;
  #countedAtMs: number | undefined;

  /** Takes one fetch from the budget. @returns whether there was one */
  take(nowMs: number): boolean {
    this.#refill(nowMs);
    if (this.#credit < 1) return false;
    this.#credit -= 1;
    return true;
  }

  /** Time until the next fetch is allowed. */
  waitMs(nowMs: number): number {
    this.#refill(nowMs);
    return this.#credit >= 1 ? 0 : Math.ceil((1 - this.#credit) * REFILL_MS);
  }

  #refill(nowMs: number): void {
    // A clock that was set back adds nothing; counting continues from its new time.
    const elapsedMs = Math.max(0, nowMs - (this.#countedAtMs ?? nowMs));
    this.#countedAtMs = nowMs;
    this.#credit = Math.min(BURST, this.#credit + elapsedMs / REFILL_MS);
  }
}
