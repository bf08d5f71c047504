/** Runs a task repeatedly, never concurrently, and sooner on request. */

/** Minimum interval between requested runs. */
const MIN_INTERVAL_MS = 50;

export class PeriodicTask {
  readonly #intervalMs: number;
  readonly #look: () => Promise<void>;
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> | undefined;
  #isWantedSoon = false;
  #isStopped = false;

  /** Runs `look` for the first time at once. `look` must not reject. */
  constructor(intervalMs: number, look: () => Promise<void>) {
    this.#intervalMs = intervalMs;
    this.#look = look;
    this.#schedule(0);
  }

  get isStopped(): boolean {
    return this.#isStopped;
  }

  /** Runs at once, or right after the run in progress, at most every 50 ms. */
  soon(): void {
    if (this.#isWantedSoon) return;
    this.#isWantedSoon = true;
    if (this.#running === undefined) this.#schedule(MIN_INTERVAL_MS);
  }

  /** Resolves when no run is in progress. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    await this.#running;
  }

  #schedule(delayMs: number): void {
    if (this.#isStopped) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#running = this.#run();
    }, delayMs).unref();
  }

  async #run(): Promise<void> {
    this.#isWantedSoon = false;
    await this.#look();
    this.#running = undefined;
    this.#schedule(this.#isWantedSoon ? MIN_INTERVAL_MS : this.#intervalMs);
  }
}
