/** Runs tasks so that they do not overlap. */

/** Runs tasks one after another, in the order in which they were given. */
export class OneAtATime {
  #last: Promise<unknown> = Promise.resolve();

  run<T>(task: () => Promise<T>): Promise<T> {
    const result = this.#last.then(task);
    this.#last = result.catch(() => undefined);
    return result;
  }
}

/** Runs one task at a time. All calls during a run share one more run after it. */
export class Coalesced {
  readonly #task: () => Promise<void>;
  #running: Promise<void> | undefined;
  #next: Promise<void> | undefined;

  /** @param task must not reject */
  constructor(task: () => Promise<void>) {
    this.#task = task;
  }

  /** Resolves after a run that began at or after this call. */
  run(): Promise<void> {
    if (this.#running === undefined) return this.#start();
    this.#next ??= this.#running.then(() => {
      this.#next = undefined;
      return this.#start();
    });
    return this.#next;
  }

  #start(): Promise<void> {
    this.#running = this.#task().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }
}
