/** Records the current problem of one activity and since when. Reports each change once, not at every attempt. */
import type { BundleError, BundleErrorCode } from '../../bundle/format/bundle-error.ts';

export interface Problem<E> {
  readonly error: E;
  /** When the problem was first seen. */
  readonly sinceSeconds: number;
}

/** Error codes that stem from this machine, not from a document: retrying the same document may succeed later. */
export const PASSING: ReadonlySet<BundleErrorCode> = new Set([
  'file_unreadable',
  'file_not_written',
  'mark_corrupt',
  'mark_unavailable',
  'mark_of_another_site',
  // The clock may have been ahead.
  'expired',
  'internal',
]);

export class ProblemRecord<E extends { readonly code: string; readonly message: string } = BundleError> {
  readonly #nowSeconds: () => number;
  readonly #onChange: (error: E) => void;
  #current: Problem<E> | undefined;

  /** @param onChange called for each new problem; must not throw */
  constructor(nowSeconds: () => number, onChange: (error: E) => void) {
    this.#nowSeconds = nowSeconds;
    this.#onChange = onChange;
  }

  get current(): Problem<E> | undefined {
    return this.#current;
  }

  set(error: E): void {
    const before = this.#current?.error;
    if (error.code === before?.code && error.message === before.message) return;
    this.#current = { error, sinceSeconds: this.#nowSeconds() };
    this.#onChange(error);
  }

  /** @returns whether there was a problem */
  clear(): boolean {
    const was = this.#current !== undefined;
    this.#current = undefined;
    return was;
  }

  /** {@link ProblemRecord.set}, or {@link ProblemRecord.clear} without an error. */
  settle(error: E | undefined): void {
    if (error === undefined) this.clear();
    else this.set(error);
  }
}
