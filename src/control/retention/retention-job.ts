/**
 * What has served its time goes: audit events, challenges, sessions, kept answers, ended keys and the enrollments behind
 * them. One instance does it for all.
 * Source: docs/control.md "Running Control".
 */
import { setTimeout as pause } from 'node:timers/promises';
import type { ControlStore, Transaction } from '../store/port.ts';

export interface RetentionOptions {
  readonly store: ControlStore;
  readonly nowMs: () => number;
  readonly auditRetentionMs: number;
  /** Of ended keys and decided enrollments. */
  readonly keyRetentionMs: number;
  /** A round failed; the next one tries again. */
  readonly report: (error: unknown) => void;
  readonly roundMs?: number;
}

const ROUND_MS = 60_000;
/** A challenge that was used says "used" rather than "unknown" for that long. */
const CHALLENGE_RETENTION_MS = 3_600_000;
/** How long an Idempotency-Key is remembered. */
export const ANSWER_RETENTION_MS = 24 * 3_600_000;

/** @returns how to stop; resolves when a round under way is finished */
export function startRetentionJob(options: RetentionOptions): () => Promise<void> {
  const { store, report, roundMs = ROUND_MS } = options;
  return store.lead('retention', async (signal) => {
    while (!signal.aborted) {
      await pruneOnce(options).catch(report);
      await pause(roundMs, undefined, { signal, ref: false }).catch(() => {});
    }
  });
}

export async function pruneOnce(options: Omit<RetentionOptions, 'report' | 'roundMs'>): Promise<void> {
  const { store, nowMs, auditRetentionMs, keyRetentionMs } = options;
  const now = nowMs();
  const keysEndedBeforeSeconds = Math.floor((now - keyRetentionMs) / 1000);
  const answersBeforeMs = now - ANSWER_RETENTION_MS;
  const challengesBeforeMs = now - CHALLENGE_RETENTION_MS;
  await store.housekeep(undefined, (tx) => tx.operators.pruneSessions(now));
  await store.housekeep(undefined, (tx) => tx.operators.pruneAnswers(answersBeforeMs));
  await inBatches(store, (tx) => tx.enrollments.pruneChallenges(challengesBeforeMs));
  // Keys before enrollments: an enrollment is how a key's origin is told.
  await inBatches(store, (tx) => tx.keys.prune(keysEndedBeforeSeconds));
  await inBatches(store, (tx) => tx.enrollments.prune(keysEndedBeforeSeconds));
  await inBatches(store, (tx) => tx.audit.prune(now - auditRetentionMs));
}

/** Each batch is a transaction of its own, so that none holds up others for long. */
async function inBatches(store: ControlStore, prune: (tx: Transaction) => Promise<number>): Promise<void> {
  while ((await store.housekeep(undefined, prune)) > 0);
}
