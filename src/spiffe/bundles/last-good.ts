/**
 * Limits how long a source's last good bundles are used while it fails. An attacker who blocks a source must not keep a
 * revoked authority in use forever.
 */

/** Source: docs/operate/broker.md "Trust bundles". */
export const MAX_FAILURE_MS = 24 * 60 * 60 * 1000;

export class FailurePeriod {
  readonly #nowMs: () => number;
  readonly #withdraw: () => void;
  #sinceMs: number | undefined;
  /** A source that hangs reports no further failure. */
  #timer: NodeJS.Timeout | undefined;

  /**
   * @param withdraw called when the source has failed for so long that its bundles must be removed, and at each later
   * failure
   */
  constructor(nowMs: () => number, withdraw: () => void) {
    this.#nowMs = nowMs;
    this.#withdraw = withdraw;
  }

  succeeded(): void {
    this.#sinceMs = undefined;
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  failed(): void {
    this.#sinceMs ??= this.#nowMs();
    this.#timer ??= setTimeout(this.#withdraw, MAX_FAILURE_MS).unref();
    if (this.isOver) this.#withdraw();
  }

  get isOver(): boolean {
    return this.#sinceMs !== undefined && !(this.#nowMs() - this.#sinceMs < MAX_FAILURE_MS);
  }
}
