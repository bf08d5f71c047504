/** Spaces out attempts that keep failing: each wait is twice the one before, up to a limit. */
export class Backoff {
  readonly #firstMs: number;
  readonly #mostMs: number;
  #waitMs: number;
  #notBeforeMs = 0;

  constructor(firstMs: number, mostMs: number) {
    this.#firstMs = firstMs;
    this.#mostMs = mostMs;
    this.#waitMs = firstMs;
  }

  get isDue(): boolean {
    return performance.now() >= this.#notBeforeMs;
  }

  failed(): void {
    this.#notBeforeMs = performance.now() + this.#waitMs;
    this.#waitMs = Math.min(this.#waitMs * 2, this.#mostMs);
  }

  reset(): void {
    this.#waitMs = this.#firstMs;
    this.#notBeforeMs = 0;
  }
}
