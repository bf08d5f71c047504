/**
 * Long work in slices: checking a key costs about a millisecond and a bundle may hold many thousands, while the
 * same process answers requests.
 */
import { setImmediate } from 'node:timers/promises';

const SLICE_MS = 4;

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
}
