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
