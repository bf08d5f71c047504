/**
 * Tells Control what became of what it published. Beside the polls, so that neither waits for the other; what is not
 * the latest by the time that it can be sent is not worth sending.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Acknowledgement } from '../../../bundle/format/distribution-contract.ts';
import type { ControlConnection } from './control-connection.ts';
import { ControlFailure } from './control-failure.ts';
import type { RetryDelay } from './retry-delay.ts';

export interface AcknowledgerOptions {
  readonly connection: Pick<ControlConnection, 'acknowledge'>;
  readonly signal: AbortSignal;
  readonly onFailure: (error: unknown) => void;
  readonly onSent: (acknowledgement: Acknowledgement) => void;
  readonly retry: RetryDelay;
}

export class Acknowledger {
  readonly #options: AcknowledgerOptions;
  #pending: Acknowledgement | undefined;
  #sending: Promise<void> | undefined;

  constructor(options: AcknowledgerOptions) {
    this.#options = options;
  }

  /** Returns at once. */
  send(acknowledgement: Acknowledgement): void {
    this.#pending = acknowledgement;
    this.#sending ??= this.#run();
  }

  /** Returns when nothing is being sent any more. */
  async idle(): Promise<void> {
    await this.#sending;
  }

  async #run(): Promise<void> {
    const { connection, onFailure, onSent, retry, signal } = this.#options;
    while (this.#pending !== undefined && !signal.aborted) {
      const acknowledgement = this.#pending;
      try {
        await connection.acknowledge(acknowledgement, signal);
        if (this.#pending === acknowledgement) this.#pending = undefined;
        retry.reset();
        onSent(acknowledgement);
      } catch (error) {
        if (signal.aborted) break;
        onFailure(error);
        const retryAfterMs = error instanceof ControlFailure ? error.retryAfterMs : undefined;
        await sleep(retry.failed(retryAfterMs), undefined, { signal }).catch(() => undefined);
      }
    }
    // In the same turn as the look at what is pending: whoever sends after it starts anew.
    this.#sending = undefined;
  }
}
