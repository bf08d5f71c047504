/**
 * Acknowledges to Control what the verifier accepted or rejected. Runs concurrently with the polls, so that neither
 * waits for the other. It sends only the latest acceptance and the latest rejection; older ones are dropped.
 */
import type { Acknowledgement } from '../../../bundle/format/distribution-contract.ts';
import type { Backoff } from '../../../process/program/backoff.ts';
import type { ControlConnection } from './control-connection.ts';
import { retryAfterOf } from './control-failure.ts';

export interface AcknowledgerOptions {
  readonly connection: ControlConnection;
  readonly signal: AbortSignal;
  readonly onFailure: (error: unknown) => void;
  readonly onSent: (acknowledgement: Acknowledgement) => void;
  readonly backoff: Backoff;
  /** Resolves after the time, or at once when aborted. */
  readonly sleep: (waitMs: number, signal: AbortSignal) => Promise<void>;
}

export class Acknowledger {
  readonly #options: AcknowledgerOptions;
  /** The latest of each outcome, because workers may hold a revision after the next one was rejected. */
  readonly #pending = new Map<Acknowledgement['outcome'], Acknowledgement>();
  #sending: Promise<void> | undefined;

  constructor(options: AcknowledgerOptions) {
    this.#options = options;
  }

  /** Returns at once. */
  send(acknowledgement: Acknowledgement): void {
    this.#pending.set(acknowledgement.outcome, acknowledgement);
    this.#sending ??= this.#run();
  }

  /** Returns when nothing is being sent. */
  async idle(): Promise<void> {
    await this.#sending;
  }

  async #run(): Promise<void> {
    const { connection, backoff, onFailure, onSent, signal, sleep } = this.#options;
    while (!signal.aborted) {
      const [acknowledgement] = this.#pending.values();
      if (acknowledgement === undefined) break;
      const { outcome } = acknowledgement;
      try {
        await connection.acknowledge(acknowledgement, signal);
        if (this.#pending.get(outcome) === acknowledgement) this.#pending.delete(outcome);
        backoff.reset();
        onSent(acknowledgement);
      } catch (error) {
        if (signal.aborted) break;
        this.#moveToEnd(outcome);
        onFailure(error);
        await sleep(backoff.failed(retryAfterOf(error)), signal);
      }
    }
    // In the same turn as the check for a pending one, so that a later `send` starts a new run.
    this.#sending = undefined;
  }

  /** Sends the other outcome next, so that an acknowledgement that always fails does not keep it back. */
  #moveToEnd(outcome: Acknowledgement['outcome']): void {
    const latest = this.#pending.get(outcome);
    if (latest === undefined) return;
    this.#pending.delete(outcome);
    this.#pending.set(outcome, latest);
  }
}
