/** A worker's end of the channel to its primary: there it has its admin listener, and is told when to leave. */
import type { AdminListener, AdminOptions } from '../../../enforcement/admin/server.ts';
import type { CliError } from '../../../program/errors.ts';
import { stopped } from '../../../program/stop-signal.ts';
import type { Departure } from '../graceful-shutdown.ts';
import { parsePrimaryMessage, type WorkerMessage } from './worker-messages.ts';

const STATE_INTERVAL_MS = 200;

/** This process, as far as it is the end of a channel. */
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

  /** What was said before is told again, and heard before the primary lets this worker listen. */
  constructor(end: ChannelEnd = process) {
    this.#end = end;
    end.on('message', (value) => void this.#hear(value));
    this.#say({ kind: 'hearing' });
  }

  /** The primary says when. One that begins while all leave stands in for one that died, so it opens its ext_authz server. */
  get departure(): Departure {
    const closing = this.#closing.signal;
    return {
      leaving: this.#leaving.signal,
      isCalledOff: () => closing.aborted,
      untilClosing: () => stopped(closing),
    };
  }

  /**
   * In place of an admin listener: tells the primary how this worker is, again and again.
   * @param address where the ext_authz server listens
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

  /** The primary ends with the same error. */
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
  /** Without a primary the process is about to end: nothing is worth telling any more. */
  #say(message: WorkerMessage): void {
    if (this.#end.connected) this.#end.send?.(message, () => undefined);
  }
}
