/**
 * Splits long work into slices: validating a key takes about a millisecond and a bundle may hold many thousands, while
 * the same process answers requests.
 */
import { setImmediate } from 'node:timers/promises';

const SLICE_MS = 4;

/** Work that can pause after each step. */
export type Steps<T> = Generator<undefined, T, undefined>;

/** Runs all steps without pausing. */
export function withoutPause<T>(steps: Steps<T>): T {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

export class TimeSlice {
  #startedMs = performance.now();

  /** Whether this slice is used up, so that the caller should await {@link TimeSlice.next}. */
  get isUsedUp(): boolean {
    return performance.now() - this.#startedMs >= SLICE_MS;
  }

  /** Lets all pending events run first. */
  async next(): Promise<void> {
    await setImmediate();
    this.#startedMs = performance.now();
  }

  /** Runs all steps and lets other work run in between. */
  async run<T>(steps: Steps<T>): Promise<T> {
    for (;;) {
      const step = steps.next();
      if (step.done === true) return step.value;
      if (this.isUsedUp) await this.next();
    }
  }
}
