/**
 * Background jobs of sources, on the leading instance: finish interrupted activations, and refresh key sets.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { type KeySetCache, refreshOnSchedule } from '../issuers/key-set-cache.ts';
import type { ControlStore } from '../store/port.ts';
import { liveKeySources } from './key-set-records.ts';
import type { SourceActivation } from './source-activation.ts';

/** Longer than a check takes (two fetches of 5 s each), so that the instance that began it finishes first. */
const STRANDED_AFTER_MS = 15_000;
const CHECK_ROUND_MS = 5_000;
const REFRESH_ROUND_MS = 10_000;

export interface SourceJobs {
  readonly store: ControlStore;
  readonly activation: SourceActivation;
  readonly cache: KeySetCache;
  /** Reports a failed round; the next one tries again. */
  readonly report: (error: unknown) => void;
  readonly checkRoundMs?: number;
  readonly strandedAfterMs?: number;
  readonly refreshRoundMs?: number;
}

/** @returns a function that stops the jobs; it resolves when running rounds are finished */
export function startSourceJobs(jobs: SourceJobs): () => Promise<void> {
  const { store, activation, cache, report } = jobs;
  const { checkRoundMs = CHECK_ROUND_MS, strandedAfterMs = STRANDED_AFTER_MS } = jobs;
  const stops = [
    store.lead('source-activation', async (signal) => {
      while (!signal.aborted) {
        await activation.checkStranded(strandedAfterMs).catch(report);
        await pause(checkRoundMs, undefined, { signal, ref: false }).catch(() => {});
      }
    }),
    store.lead('key-set-refresh', (signal) =>
      refreshOnSchedule({
        cache,
        liveSources: () => liveKeySources(store),
        roundMs: jobs.refreshRoundMs ?? REFRESH_ROUND_MS,
        signal,
        listingFailed: report,
      }),
    ),
  ];
  return async () => {
    await Promise.all(stops.map((stop) => stop()));
    await activation.settled();
  };
}
