/**
 * How long a source's last good bundles are used while it fails. An attacker who cuts a source off must not keep a revoked
 * authority in use for ever.
 */

/** Source: docs/broker.md "Trust bundles". */
export const MAX_FAILURE_MS = 24 * 60 * 60 * 1000;

export class FailurePeriod {
  readonly #nowMs: () => number;
  #sinceMs: number | undefined;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  succeeded(): void {
    this.#sinceMs = undefined;
  }

  /** @returns whether the source has failed for so long that its bundles must go */
  failed(): boolean {
    this.#sinceMs ??= this.#nowMs();
    return !(this.#nowMs() - this.#sinceMs < MAX_FAILURE_MS);
  }
}
