/**
 * The latch in a worker, which only reads what the primary wrote. The primary writes it before the mark lets a worker use a bundle,
 * and the worker reads it before it uses that bundle. What cannot be read, or is missing, is not observed.
 * Source: docs/operate/observe.md "End".
 */
import { type Latches, readLatches } from './latch-file.ts';
import type { AllowedByName, LatchKeeper } from './latch-keeper.ts';
import type { LatchInputs } from './own-latches.ts';

export class FollowedLatches implements LatchKeeper {
  readonly isOwner = false;
  readonly #inputs: LatchInputs;
  readonly #allowed: AllowedByName;
  /** As last read; undefined before, and while it cannot be read. */
  #latches: Latches | undefined;
  /** Names of those that this process saw closed or ended. */
  readonly #closed = new Set<string>();
  #hasFailed = false;
  #isReading = false;
  #reading: Promise<void> = Promise.resolve();

  constructor(inputs: LatchInputs, allowed: AllowedByName) {
    this.#inputs = inputs;
    this.#allowed = allowed;
  }

  follow(): void {
    // The primary follows bundles.
  }

  isOpen(name: string, nowSeconds: number): boolean {
    const latch = this.#latches?.get(name);
    if (latch?.until === undefined || latch.allowedUntil !== this.#allowed.get(name)) return false;
    if (latch.isClosed || !(nowSeconds < latch.until)) this.#closed.add(name);
    return !this.#closed.has(name);
  }

  isClosed(name: string): boolean {
    return this.#closed.has(name);
  }

  tick(nowSeconds: number): void {
    for (const name of this.#allowed.keys()) this.isOpen(name, nowSeconds);
    if (!this.#isReading) void this.ready();
  }

  settled(): Promise<void> {
    return this.#reading;
  }

  /** Reads one after the other, so that an older content never replaces a newer one. Never rejects. */
  ready(): Promise<void> {
    if (this.#allowed.size === 0) return this.#reading;
    this.#isReading = true;
    this.#reading = this.#reading.then(() => this.#read());
    return this.#reading;
  }

  async #read(): Promise<void> {
    const { authSite, onLatchFailed, stateDirectory } = this.#inputs;
    try {
      this.#latches = await readLatches(stateDirectory, authSite);
      this.#hasFailed = false;
    } catch (error) {
      this.#latches = undefined;
      if (!this.#hasFailed) onLatchFailed(error);
      this.#hasFailed = true;
    }
    this.#isReading = false;
  }
}
