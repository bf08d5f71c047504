import { setTimeout as delay } from 'node:timers/promises';

/**
 * Runs `attempt` again and again, with a pause between, until stopped. An attempt that throws is one that ended.
 * @param attempt its signal aborts when there is to be an end
 * @returns how to stop; resolves when the attempt under way has ended
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

/** Ends at once when the signal aborts. */
export async function pause(durationMs: number, signal: AbortSignal): Promise<void> {
  await delay(durationMs, undefined, { signal }).catch(() => {});
}
