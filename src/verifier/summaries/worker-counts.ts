/** Counts the decisions of a worker process, and hands them to the primary, which reports those of all workers. */
import {
  type CountedDecision,
  DecisionCounts,
  type DecisionSummary,
} from '../../bundle/format/decision-summary.ts';
import { type KeyUse, LastUses } from '../../bundle/format/key-use.ts';
import { type UnknownKey, UnknownKeys } from '../../bundle/format/unknown-keys.ts';

/** Short beside a minute, so that few decisions are shown in the minute after theirs. */
const HAND_OVER_MS = 5_000;

export type WorkerReport =
  /** Decisions since the last report of this kind. */
  | { readonly kind: 'counted'; readonly summary: DecisionSummary }
  /** Last uses of derived keys, at most as many as in a post to Control. */
  | { readonly kind: 'used'; readonly uses: readonly KeyUse[] }
  /** Keys of OAuth issuers that the bundle lacks, at most as many as in a post to Control. */
  | { readonly kind: 'unknown'; readonly keys: readonly UnknownKey[] };

export class WorkerCounts {
  readonly #counts = new DecisionCounts();
  readonly #uses = new LastUses();
  readonly #unknownKeys = new UnknownKeys();
  readonly #handOver: (report: WorkerReport) => void;
  #timer: NodeJS.Timeout | undefined;

  constructor(handOver: (report: WorkerReport) => void) {
    this.#handOver = handOver;
  }

  add(decision: CountedDecision): void {
    this.#counts.add(decision);
    const { derivedKeyId: keyId, unknownKey } = decision;
    if (keyId !== undefined) this.#uses.add({ keyId, usedAtSeconds: Date.now() / 1000 });
    if (unknownKey !== undefined) this.#unknownKeys.add(unknownKey);
    this.#timer ??= setTimeout(() => this.#flush(), HAND_OVER_MS).unref();
  }

  close(): void {
    if (this.#timer !== undefined) this.#flush();
  }

  #flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#handOver({ kind: 'counted', summary: this.#counts.take() });
    while (this.#uses.size > 0) this.#handOver({ kind: 'used', uses: this.#uses.takePage() });
    while (this.#unknownKeys.size > 0)
      this.#handOver({ kind: 'unknown', keys: this.#unknownKeys.takePage() });
  }
}
