import { StoreUnavailableError } from './port.ts';

/** Maximum wait for a turn: longer than any transaction that is not stuck. */
const PATIENCE_MS = 30_000;

/** FIFO queues by name. Queues of different names do not wait for each other. */
export class Turns {
  /** Resolves when the last entry of the queue has ended; never rejects. */
  readonly #ends = new Map<string, Promise<void>>();
  readonly #patienceMs: number;

  constructor(patienceMs = PATIENCE_MS) {
    this.#patienceMs = patienceMs;
  }

  /** @throws StoreUnavailableError when the turn does not come in time (`run` is then not called); whatever `run` throws */
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
