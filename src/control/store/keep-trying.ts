import { setTimeout as delay } from 'node:timers/promises';
import type { ReportIncident } from './port.ts';

/**
 * Repeats `attempt`, with a pause in between, until stopped. An attempt that throws counts as ended.
 * @param attempt gets a signal that aborts on stop
 * @returns a function that stops; it resolves when the current attempt has ended
 */
export function keepTrying(
  pauseMs: number,
  attempt: (stop: AbortSignal) => Promise<void>,
): () => Promise<void> {
  const stop = new AbortController();
  const ended = repeat(pauseMs, attempt, stop.signal);
  return async () => {
    stop.abort();
    await ended;
  };
}

async function repeat(
  pauseMs: number,
  attempt: (stop: AbortSignal) => Promise<void>,
  stop: AbortSignal,
): Promise<void> {
  while (!stop.aborted) {
    await attempt(stop).catch(() => {});
    await pause(pauseMs, stop);
  }
}

/** Waits, or returns at once when the signal aborts. */
export async function pause(durationMs: number, signal: AbortSignal): Promise<void> {
  await delay(durationMs, undefined, { signal }).catch(() => {});
}

/** Runs a leader's work once. If it throws, or returns before the signal aborts, that is reported as an incident. */
export async function leadOnce(
  name: string,
  work: (signal: AbortSignal) => Promise<void>,
  signal: AbortSignal,
  report: ReportIncident,
): Promise<void> {
  try {
    await work(signal);
    if (!signal.aborted) report({ kind: 'lead_work_failed', name, error: new Error('it returned') });
  } catch (error) {
    if (!signal.aborted) report({ kind: 'lead_work_failed', name, error });
  }
}
