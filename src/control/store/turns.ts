import { StoreUnavailableError } from './port.ts';

/** Longer than anything takes that is not stuck. */
const PATIENCE_MS = 30_000;

/** Turns by name: who comes first goes first, and names do not wait for each other. */
export class Turns {
  /** When the last one in the queue has ended; never rejects. */
  readonly #ends = new Map<string, Promise<void>>();
  readonly #patienceMs: number;

  constructor(patienceMs = PATIENCE_MS) {
    this.#patienceMs = patienceMs;
  }

  /** @throws StoreUnavailableError when its turn does not come in time, and `run` was not called; whatever `run` throws */
  take<T>(name: string, run: () => Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      let gaveUp = false;
      const timer = setTimeout(() => {
        gaveUp = true;
        reject(new StoreUnavailableError('the database is busy'));
      }, this.#patienceMs);
      const before = this.#ends.get(name) ?? Promise.resolve();
      const end = before.then(async () => {
        clearTimeout(timer);
        if (!gaveUp) await run().then(resolve, reject);
      });
      this.#ends.set(name, end);
      void end.then(() => {
        if (this.#ends.get(name) === end) this.#ends.delete(name);
      });
    });
  }
}
