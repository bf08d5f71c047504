/** What is wrong with one thing, since when: told once for each change, not at every look. */
import type { BundleError } from './errors.ts';

export interface BundleProblem {
  readonly error: BundleError;
  /** When it was first seen. */
  readonly sinceSeconds: number;
}

export class ProblemRecord {
  readonly #nowSeconds: () => number;
  readonly #tell: (error: BundleError) => void;
  #current: BundleProblem | undefined;

  /** @param tell called for each new problem; must not throw */
  constructor(nowSeconds: () => number, tell: (error: BundleError) => void) {
    this.#nowSeconds = nowSeconds;
    this.#tell = tell;
  }

  get current(): BundleProblem | undefined {
    return this.#current;
  }

  set(error: BundleError | undefined): void {
    const before = this.#current?.error;
    if (error?.code === before?.code && error?.message === before?.message) return;
    this.#current = error && { error, sinceSeconds: this.#nowSeconds() };
    if (error !== undefined) this.#tell(error);
  }
}
