/** Asks a command that runs on to come to an end: SIGTERM from whoever started it, SIGINT from a terminal. */

/**
 * Aborts at the first signal. The same signal again ends the process at once, as if nobody listened; the other one
 * changes nothing, because supervisors send both.
 */
export function listenForStop(): AbortSignal {
  const controller = new AbortController();
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.once(signal, () => controller.abort());
  }
  return controller.signal;
}

/** The same for a task that comes to an end by itself: afterwards signals mean what they meant before. */
export async function untilStopped<T>(task: (stop: AbortSignal) => Promise<T>): Promise<T> {
  const controller = new AbortController();
  const stop = () => controller.abort();
  const signals = ['SIGTERM', 'SIGINT'] as const;
  for (const signal of signals) process.once(signal, stop);
  try {
    return await task(controller.signal);
  } finally {
    for (const signal of signals) process.off(signal, stop);
  }
}
