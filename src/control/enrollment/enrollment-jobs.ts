/**
 * Background jobs of sources and enrollment, on the leading instance: expire overdue pending enrollments, prune old records,
 * finish interrupted activations and refresh key sets.
 * Source: docs/operate/control.md "Scope, permissions, secrets" (pruning).
 */
import type { KeySetCache } from '../issuers/key-set-cache.ts';
import { liveKeySources } from '../sources/key-set-records.ts';
import type { SourceLifecycle } from '../sources/source-lifecycle.ts';
import { leadRounds } from '../store/leader-jobs.ts';
import type { ControlStore } from '../store/port.ts';
import { PRUNED_AT_ONCE } from '../store/repositories/records.ts';
import type { Transaction } from '../store/transaction.ts';
import type { EnrollmentDecisions } from './decisions.ts';

const DAY_MS = 86_400_000;

/** Retention of records. Revoked public keys and blocked subjects are never removed. */
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

const HOUSEKEEPING_ROUND_MS = 5_000;
const MAX_EXPIRED_A_ROUND = 1_000;
/** Pruning only frees space, so it may wait. */
const ROUNDS_BETWEEN_PRUNINGS = 12;
/** Longer than a check takes (two fetches of 5 s each), so that the instance that began it finishes first. */
const STRANDED_AFTER_MS = 15_000;
const CHECK_ROUND_MS = 5_000;
const REFRESH_ROUND_MS = 10_000;

export interface EnrollmentJobs {
  readonly store: ControlStore;
  readonly nowMs: () => number;
  readonly decisions: EnrollmentDecisions;
  readonly lifecycle: SourceLifecycle;
  readonly keySets: KeySetCache;
  readonly retention?: Partial<Retention>;
  /** Reports a failed round; the next one tries again. */
  readonly report: (error: unknown) => void;
  readonly housekeepingRoundMs?: number;
}

/** @returns a function that stops the jobs; it resolves when the current rounds are finished */
export function startEnrollmentJobs(jobs: EnrollmentJobs): () => Promise<void> {
  const { store, nowMs, decisions, lifecycle, keySets, report } = jobs;
  const retention = { ...DEFAULT_RETENTION, ...jobs.retention };
  const stops = [
    leadRounds(store, 'enrollment-housekeeping', {
      pauseMs: jobs.housekeepingRoundMs ?? HOUSEKEEPING_ROUND_MS,
      report,
      run: async (round) => {
        await decisions.expireOverdue(MAX_EXPIRED_A_ROUND).catch(report);
        if (round % ROUNDS_BETWEEN_PRUNINGS === 0) await pruneRecords(store, nowMs(), retention);
      },
    }),
    leadRounds(store, 'source-activation', {
      pauseMs: CHECK_ROUND_MS,
      report,
      run: () => lifecycle.checkStranded(STRANDED_AFTER_MS),
    }),
    leadRounds(store, 'key-set-refresh', {
      pauseMs: REFRESH_ROUND_MS,
      report,
      run: async () => keySets.refreshDue(await liveKeySources(store)),
    }),
  ];
  return async () => {
    await Promise.all(stops.map((stop) => stop()));
    await lifecycle.untilIdle();
  };
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
    policies: await store.writeUnaudited(undefined, (tx) => tx.policies.pruneDeleted()),
    auditEvents: await inParts((tx) => tx.audit.prune(nowMs - retention.auditMs)),
  };
}

async function pruneInParts(
  store: ControlStore,
  prunePart: (tx: Transaction) => Promise<number>,
): Promise<number> {
  let pruned = 0;
  for (;;) {
    const part = await store.writeUnaudited(undefined, prunePart);
    pruned += part;
    if (part < PRUNED_AT_ONCE) return pruned;
  }
}
