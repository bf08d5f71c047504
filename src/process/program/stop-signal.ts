/** Stops a long-running command on SIGTERM or SIGINT. */
import { constants } from 'node:os';

const SIGNALS = ['SIGTERM', 'SIGINT'] as const;

/**
 * Aborts at the first signal. A second signal of the same kind exits at once; the other kind has no effect, because
 * supervisors send both. After the task ends, the listeners are removed.
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

/** Exits explicitly, because the kernel does not apply a signal's default action to PID 1 of a container. */
function listener(signal: (typeof SIGNALS)[number], controller: AbortController): () => void {
  let hasCome = false;
  return () => {
    if (hasCome) process.exit(128 + constants.signals[signal]);
    hasCome = true;
    controller.abort();
  };
}

/** Ignores stop signals in a process that its parent shuts down: a signal to the whole process group is for the parent. */
export function leaveSignalsToParent(): void {
  for (const signal of SIGNALS) process.on(signal, () => undefined);
}

export function stopped(stop: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (stop.aborted) resolve();
    else stop.addEventListener('abort', () => resolve(), { once: true });
  });
}
