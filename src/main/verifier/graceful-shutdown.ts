/**
 * Graceful shutdown of a verifier. Health turns NOT_SERVING at once; Checks are answered during the drain delay, while
 * clients move to other verifiers; then the ext_authz server closes. Source: docs/enforcement.md "Start and stop".
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { stopped } from '../../program/stop-signal.ts';

export interface Departure {
  /** Aborts when shutdown begins: health is NOT_SERVING from then on. */
  readonly leaving: AbortSignal;
  /** Whether a verifier that is still starting must not open its ext_authz server. */
  isCalledOff(): boolean;
  /** Resolves when the ext_authz server must close. */
  untilClosing(): Promise<void>;
}

/** Shutdown on a signal, with a drain delay. A signal during startup skips the delay: no client is connected yet. */
export function departBySignal(stop: AbortSignal, delayMs: number): Departure {
  return {
    leaving: stop,
    isCalledOff: () => stop.aborted,
    untilClosing: async () => {
      await stopped(stop);
      await sleep(delayMs);
    },
  };
}
