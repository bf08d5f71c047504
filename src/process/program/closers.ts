/** Closes the parts of a process in the reverse order of their opening. */

import type { Logger } from '../telemetry/log.ts';
import { faultName } from './errors.ts';

/** If closing one part fails, the others are still closed. */
export class Closers {
  readonly #logger: Logger;
  readonly #closers: (() => Promise<void>)[] = [];

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  add(close: () => Promise<void>): void {
    this.#closers.unshift(close);
  }

  async closeAll(): Promise<void> {
    for (const close of this.#closers.splice(0)) {
      await close().catch((error: unknown) => {
        this.#logger.error({ event: 'close_failed', fault: faultName(error) }, 'a part could not be closed');
      });
    }
  }
}
