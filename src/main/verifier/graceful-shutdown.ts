/**
 * How a verifier leaves. Health says no at once; Checks are answered for a while as before, until whoever asks has turned to
 * others; then the ext_authz server closes. Source: docs/enforcement.md "Start and stop".
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { stopped } from '../../program/stop-signal.ts';

export interface Departure {
  /** Health says no from now on. */
  readonly leaving: AbortSignal;
  /** Whether a verifier whose ext_authz server is not open yet is to leave it so. */
  isCalledOff(): boolean;
  /** Settles when the ext_authz server is to be closed. */
  untilClosing(): Promise<void>;
}

/** A signal comes first, and the delay after it. Before the ext_authz server is open nobody asks, so nobody is waited for. */
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
