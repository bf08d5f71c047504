/** Removes old counts of decisions, on the leading instance: minutes after a day, hours after seven. */
import { leadRounds } from '../store/leader-jobs.ts';
import type { ControlStore } from '../store/port.ts';
import { PRUNED_AT_ONCE } from '../store/repositories/records.ts';
import { HOUR_SECONDS, MINUTE_SECONDS } from './collected-summaries.ts';

export const DAY_SECONDS = 24 * HOUR_SECONDS;
export const KEPT_SECONDS = { minute: DAY_SECONDS, hour: 7 * DAY_SECONDS } as const;
const ROUND_MS = 300_000;

export interface PruningOptions {
  readonly store: ControlStore;
  readonly nowMs: () => number;
  /** Reports a failed round; the next one tries again. */
  readonly report: (error: unknown) => void;
}

/** @returns a function that stops; it resolves when the current round is finished */
export function startSummaryPruning({ nowMs, report, store }: PruningOptions): () => Promise<void> {
  return leadRounds(store, 'decision-summaries', {
    pauseMs: ROUND_MS,
    report,
    run: () => pruneSummaries(store, nowMs()),
  });
}

/** In small transactions, so that others wait only briefly. */
export async function pruneSummaries(store: ControlStore, nowMs: number): Promise<void> {
  const nowSeconds = Math.floor(nowMs / 1000);
  const kept = [
    [MINUTE_SECONDS, KEPT_SECONDS.minute],
    [HOUR_SECONDS, KEPT_SECONDS.hour],
  ] as const;
  for (const [spanSeconds, keptSeconds] of kept) {
    for (let removed = PRUNED_AT_ONCE; removed >= PRUNED_AT_ONCE; ) {
      removed = await store.writeUnaudited(undefined, (tx) =>
        tx.decisionSummaries.prune(spanSeconds, nowSeconds - keptSeconds),
      );
    }
  }
}
