/** A worker's end of the channel to its primary: reports readiness and metrics, receives shutdown messages. */
import type { AdminListener, AdminOptions } from '../../../enforcement/admin/server.ts';
import type { CliError } from '../../../program/errors.ts';
import { stopped } from '../../../program/stop-signal.ts';
import type { Departure } from '../graceful-shutdown.ts';
import { parsePrimaryMessage, type WorkerMessage } from './worker-messages.ts';

const STATE_INTERVAL_MS = 200;

/** The part of `process` that the channel uses. */
export interface ChannelEnd {
  readonly connected: boolean;
  on(event: 'message', hear: (value: unknown) => void): unknown;
  send?(message: unknown, done: () => void): boolean;
}

export class WorkerChannel {
  readonly #end: ChannelEnd;
  readonly #leaving = new AbortController();
  readonly #closing = new AbortController();
  #metrics: AdminOptions['metrics'] | undefined;

  /** Announces itself: the primary then repeats a shutdown message that it sent earlier. */
  constructor(end: ChannelEnd = process) {
    this.#end = end;
    end.on('message', (value) => void this.#hear(value));
    this.#say({ kind: 'hearing' });
  }

  /**
   * Shutdown as the primary directs it. A worker that starts during the drain delay replaces one that died, so it still
   * opens its ext_authz server.
   */
  get departure(): Departure {
    const closing = this.#closing.signal;
    return {
      leaving: this.#leaving.signal,
      isCalledOff: () => closing.aborted,
      untilClosing: () => stopped(closing),
    };
  }

  /**
   * Replaces the admin listener: sends this worker's readiness to the primary at an interval.
   * @param address address of the ext_authz server
   */
  report(
    { metrics, readiness }: Pick<AdminOptions, 'metrics' | 'readiness'>,
    address: string,
  ): AdminListener {
    this.#metrics = metrics;
    const tell = () => this.#say({ kind: 'state', address, checks: readiness() });
    tell();
    this.#leaving.signal.addEventListener('abort', tell);
    const timer = setInterval(tell, STATE_INTERVAL_MS);
    return {
      address: 'primary',
      close: async () => {
        tell();
        clearInterval(timer);
      },
    };
  }

  /** Sends the error to the primary, which exits with the same one if the workers have not all started yet. */
  fail({ code, message }: CliError): Promise<void> {
    return new Promise((resolve) => {
      this.#end.send?.({ kind: 'failed', code, message } satisfies WorkerMessage, () => resolve());
    });
  }

  async #hear(value: unknown): Promise<void> {
    const message = parsePrimaryMessage(value);
    switch (message?.kind) {
      case 'leave':
        this.#leaving.abort();
        return;
      case 'close':
        this.#leaving.abort();
        this.#closing.abort();
        return;
      case 'scrape':
        if (this.#metrics === undefined) return;
        this.#say({ kind: 'metrics', id: message.id, text: (await this.#metrics()).text });
    }
  }
  /** Sends nothing after a disconnect: without a primary the process is about to end. */
  #say(message: WorkerMessage): void {
    if (this.#end.connected) this.#end.send?.(message, () => undefined);
  }
}
