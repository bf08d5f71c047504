/**
 * How often one key set may be fetched, whatever asks for it: two at once, then one every 40 s. No 60 s hold more than three.
 * A token bucket; its clock is an argument. Source: docs/control.md "Sources and tokens".
 */

const BURST = 2;
const REFILL_MS = 40_000;

export class FetchBudget {
  #credit = BURST;
  #countedAtMs: number | undefined;

  /** Takes one fetch, if there is one. */
  take(nowMs: number): boolean {
    this.#refill(nowMs);
    if (this.#credit < 1) return false;
    this.#credit -= 1;
    return true;
  }

  /** How long until there is one. */
  waitMs(nowMs: number): number {
    this.#refill(nowMs);
    return this.#credit >= 1 ? 0 : Math.ceil((1 - this.#credit) * REFILL_MS);
  }

  #refill(nowMs: number): void {
    // A clock that was set back adds nothing, and time is counted from where it is now.
    const elapsedMs = Math.max(0, nowMs - (this.#countedAtMs ?? nowMs));
    this.#countedAtMs = nowMs;
    this.#credit = Math.min(BURST, this.#credit + elapsedMs / REFILL_MS);
  }
}
