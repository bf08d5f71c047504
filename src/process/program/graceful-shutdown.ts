/**
 * Graceful shutdown. Health turns NOT_SERVING at once; requests are answered during the drain delay, while clients move
 * to other verifiers; then the servers close. Source: docs/operate/enforcement.md "Start and stop".
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { stopped } from './stop-signal.ts';

export interface Shutdown {
  /** Aborts when shutdown begins: health is NOT_SERVING from then on. */
  readonly begun: AbortSignal;
  /** Whether a verifier that is still starting must not open its servers. */
  isBeforeOpening(): boolean;
  /** Resolves when the servers must close. */
  untilClosing(): Promise<void>;
}

/** Shutdown on a signal, with a drain delay. A signal during startup skips the delay: no client is connected yet. */
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
