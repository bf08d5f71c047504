/** A worker's end of the channel to its primary: there it has its admin listener. */
import type { AdminListener, AdminOptions } from '../../../enforcement/admin/server.ts';
import type { CliError } from '../../errors.ts';
import { parsePrimaryMessage, type WorkerMessage } from './messages.ts';

const STATE_INTERVAL_MS = 200;

export class WorkerChannel {
  #metrics: AdminOptions['metrics'] | undefined;

  constructor() {
    process.on('message', (value) => void this.#hear(value));
  }

  /**
   * In place of an admin listener: tells the primary how this worker is, again and again.
   * @param address where the door listens
   */
  report(
    { metrics, readiness }: Pick<AdminOptions, 'metrics' | 'readiness'>,
    address: string,
  ): AdminListener {
    this.#metrics = metrics;
    const tell = () => say({ kind: 'state', address, checks: readiness() });
    tell();
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
      process.send?.({ kind: 'failed', code, message } satisfies WorkerMessage, () => resolve());
    });
  }

  async #hear(value: unknown): Promise<void> {
    const message = parsePrimaryMessage(value);
    if (message === undefined || this.#metrics === undefined) return;
    const { text } = await this.#metrics();
    say({ kind: 'metrics', id: message.id, text });
  }
}

/** Without a primary the process is about to end: nothing is worth telling any more. */
function say(message: WorkerMessage): void {
  if (process.connected) process.send?.(message, () => undefined);
}
