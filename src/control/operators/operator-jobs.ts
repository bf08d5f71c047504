/**
 * Background jobs of the operators' part. The leading instance prunes ended sessions and sign-ins and old idempotent
 * responses. Each instance writes the last use of access tokens.
 */
import { setTimeout as pause } from 'node:timers/promises';
import type { ControlStore } from '../store/port.ts';
import type { TokenUsage } from './operators.ts';

export interface OperatorJobs {
  readonly store: ControlStore;
  readonly nowMs: () => number;
  readonly tokenUsage: TokenUsage;
  /** Reports a failed round; the next one tries again. */
  readonly report: (error: unknown) => void;
  readonly pruneRoundMs?: number;
  readonly usageRoundMs?: number;
}

const PRUNE_ROUND_MS = 60_000;
const USAGE_ROUND_MS = 15_000;
/** How long an idempotent response is kept. */
const ANSWER_RETENTION_MS = 24 * 3_600_000;

/** @returns a function that stops the jobs; it resolves when recorded uses are written */
export function startOperatorJobs(jobs: OperatorJobs): () => Promise<void> {
  const { store, nowMs, tokenUsage, report, pruneRoundMs = PRUNE_ROUND_MS } = jobs;
  const stopPruning = store.lead('operator-housekeeping', async (signal) => {
    while (!signal.aborted) {
      await pruneOperatorRecords(store, nowMs()).catch(report);
      await pause(pruneRoundMs, undefined, { signal, ref: false }).catch(() => {});
    }
  });
  const flush = () => tokenUsage.flush().catch(report);
  const timer = setInterval(() => void flush(), jobs.usageRoundMs ?? USAGE_ROUND_MS).unref();
  return async () => {
    clearInterval(timer);
    await stopPruning();
    await flush();
  };
}

export async function pruneOperatorRecords(store: ControlStore, nowMs: number): Promise<void> {
  await store.housekeep(undefined, (tx) => tx.operators.pruneSessions(nowMs));
  await store.housekeep(undefined, (tx) => tx.operators.pruneAnswers(nowMs - ANSWER_RETENTION_MS));
}
