/** Waits for a promise, but no longer than a given time. */
import { setTimeout as pause } from 'node:timers/promises';

/** @returns the promise's result, or `late` when it has not settled in time. Rejects when the promise rejects in time. */
export async function withinMs<T, Late>(
  timeoutMs: number,
  promise: Promise<T>,
  late: Late,
): Promise<T | Late> {
  const settled = new AbortController();
  try {
    return await Promise.race([promise, pause(timeoutMs, late, { signal: settled.signal })]);
  } finally {
    settled.abort();
  }
}
