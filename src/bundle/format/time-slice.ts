/**
 * Long work in slices: checking a key costs about a millisecond and a bundle may hold many thousands, while the
 * same process answers requests.
 */
import { setImmediate } from 'node:timers/promises';

const SLICE_MS = 4;

/** Work that can be put down after each step. */
export type Steps<T> = Generator<undefined, T, undefined>;

/** Does all steps at once. */
export function withoutPause<T>(steps: Steps<T>): T {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

export class TimeSlice {
  #startedMs = performance.now();

  /** Whether this slice is used up, so that the caller should wait for {@link TimeSlice.next}. */
  get isUsedUp(): boolean {
    return performance.now() - this.#startedMs >= SLICE_MS;
  }

  /** Lets everything that is waiting run first. */
  async next(): Promise<void> {
    await setImmediate();
    this.#startedMs = performance.now();
  }

  /** Does all steps, letting others run in between. */
  async run<T>(steps: Steps<T>): Promise<T> {
    for (;;) {
      const step = steps.next();
      if (step.done === true) return step.value;
      if (this.isUsedUp) await this.next();
    }
  }
}
