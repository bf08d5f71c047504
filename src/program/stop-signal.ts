/** Asks a command that runs on to come to an end: SIGTERM from whoever started it, SIGINT from a terminal. */
import { constants } from 'node:os';

const SIGNALS = ['SIGTERM', 'SIGINT'] as const;

/**
 * Aborts at the first signal. The same signal again ends the process at once; the other one changes nothing, because
 * supervisors send both. When the task has come to its end, signals mean what they meant before.
 */
export async function untilStopped<T>(task: (stop: AbortSignal) => Promise<T>): Promise<T> {
  const controller = new AbortController();
  const listeners = SIGNALS.map((signal) => ({ signal, hear: listener(signal, controller) }));
  for (const { hear, signal } of listeners) process.on(signal, hear);
  try {
    return await task(controller.signal);
  } finally {
    for (const { hear, signal } of listeners) process.off(signal, hear);
  }
}

/** The first process of a container is not ended by a signal that it leaves to the system, so it ends itself. */
function listener(signal: (typeof SIGNALS)[number], controller: AbortController): () => void {
  let hasCome = false;
  return () => {
    if (hasCome) process.exit(128 + constants.signals[signal]);
    hasCome = true;
    controller.abort();
  };
}

/** For a process that is told in another way: whoever signals all processes of a group means the one that tells it. */
export function leaveSignalsToParent(): void {
  for (const signal of SIGNALS) process.on(signal, () => undefined);
}

export function stopped(stop: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (stop.aborted) resolve();
    else stop.addEventListener('abort', () => resolve(), { once: true });
  });
}
