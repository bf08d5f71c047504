/**
 * Background jobs of enrollment, on the leading instance: expire overdue pending enrollments and prune old records.
 * Source: docs/control.md "Scope, permissions, secrets" (pruning).
 */
import { setTimeout as pause } from 'node:timers/promises';
import type { ControlStore } from '../store/port.ts';
import { PRUNED_AT_ONCE } from '../store/repositories/records.ts';
import type { Transaction } from '../store/transaction.ts';
import type { EnrollmentDecisions } from './decisions.ts';

const DAY_MS = 86_400_000;

/** Retention of records. Revoked public keys and blocked subjects stay for ever. */
export interface Retention {
  /** Challenges, after their end. Until then an answer gets `challenge_expired` rather than `challenge_unknown`. */
  readonly challengesMs: number;
  /** Enrollments and derived keys, after the key's actual or planned end. */
  readonly endedKeysMs: number;
  readonly auditMs: number;
}

export const DEFAULT_RETENTION: Retention = {
  challengesMs: 600_000,
  endedKeysMs: 30 * DAY_MS,
  auditMs: 400 * DAY_MS,
};

const ROUND_MS = 5_000;
const MAX_EXPIRED_A_ROUND = 1_000;
/** Pruning only frees space, so it may wait. */
const ROUNDS_BETWEEN_PRUNINGS = 12;

export interface EnrollmentJobs {
  readonly store: ControlStore;
  readonly nowMs: () => number;
  readonly decisions: EnrollmentDecisions;
  readonly retention?: Partial<Retention>;
  /** Reports a failed round; the next one tries again. */
  readonly report: (error: unknown) => void;
  readonly roundMs?: number;
}

/** @returns a function that stops the jobs; it resolves when the current round is finished */
export function startEnrollmentJobs(jobs: EnrollmentJobs): () => Promise<void> {
  const { store, nowMs, decisions, report, roundMs = ROUND_MS } = jobs;
  const retention = { ...DEFAULT_RETENTION, ...jobs.retention };
  return store.lead('enrollment-housekeeping', async (signal) => {
    for (let round = 0; !signal.aborted; round++) {
      await decisions.expireOverdue(MAX_EXPIRED_A_ROUND).catch(report);
      if (round % ROUNDS_BETWEEN_PRUNINGS === 0) await pruneRecords(store, nowMs(), retention).catch(report);
      await pause(roundMs, undefined, { signal, ref: false }).catch(() => {});
    }
  });
}

/** Numbers of removed records, for logs and tests. */
export interface Pruned {
  readonly challenges: number;
  readonly enrollments: number;
  readonly keys: number;
  readonly policies: number;
  readonly auditEvents: number;
}

/** Uses small transactions, so that others wait only briefly. */
export async function pruneRecords(
  store: ControlStore,
  nowMs: number,
  retention: Retention,
): Promise<Pruned> {
  const endedBeforeSeconds = Math.floor((nowMs - retention.endedKeysMs) / 1000);
  const inParts = (prunePart: (tx: Transaction) => Promise<number>) => pruneInParts(store, prunePart);
  return {
    challenges: await inParts((tx) => tx.enrollments.pruneChallenges(nowMs - retention.challengesMs)),
    // Enrollments before keys, so that an issued enrollment always finds its key.
    enrollments: await inParts((tx) => tx.enrollments.prune(endedBeforeSeconds)),
    keys: await inParts((tx) => tx.keys.prune(endedBeforeSeconds)),
    policies: await store.housekeep(undefined, (tx) => tx.policies.pruneDeleted()),
    auditEvents: await inParts((tx) => tx.audit.prune(nowMs - retention.auditMs)),
  };
}

async function pruneInParts(
  store: ControlStore,
  prunePart: (tx: Transaction) => Promise<number>,
): Promise<number> {
  let pruned = 0;
  for (;;) {
    const part = await store.housekeep(undefined, prunePart);
    pruned += part;
    if (part < PRUNED_AT_ONCE) return pruned;
  }
}
