/**
 * Graceful shutdown. Health changes to NOT_SERVING at once. During the drain delay requests are answered, while clients
 * move to other verifiers. Then the servers close. Source: docs/operate/enforcement.md "Start and stop".
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { stopped } from './stop-signal.ts';

export interface Shutdown {
  /** Aborts when shutdown begins; from then on health is NOT_SERVING. */
  readonly begun: AbortSignal;
  /** Whether a verifier that is still starting must not open its servers. */
  isBeforeOpening(): boolean;
  /** Resolves when the servers must close. */
  untilClosing(): Promise<void>;
}

/**
 * Shutdown on a signal, with a drain delay. A signal during startup skips the delay, because no client is connected
 * yet.
 */
export function shutdownBySignal(stop: AbortSignal, delayMs: number): Shutdown {
  return {
    begun: stop,
    isBeforeOpening: () => stop.aborted,
    untilClosing: async () => {
      await stopped(stop);
      await sleep(delayMs);
    },
  };
}
