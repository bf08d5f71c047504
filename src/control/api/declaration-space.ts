/** Room for the declarations that are being received, compared or applied, in bytes. */
import type { ServerResponse } from 'node:http';
import { MAX_DECLARATION_BYTES } from '../contract/declaration-contract.ts';
import { ApiProblem } from '../domain/api-problem.ts';

export const MAX_BYTES_IN_FLIGHT = 4 * MAX_DECLARATION_BYTES;
const RETRY_AFTER_SECONDS = 5;

export class DeclarationSpace {
  #usedBytes = 0;

  /** @throws ApiProblem `rate_limited` */
  take(bytes: number, response: ServerResponse): DeclarationRoom {
    if (this.#usedBytes + bytes > MAX_BYTES_IN_FLIGHT) {
      throw new ApiProblem('rate_limited', 'too many declarations at once', {
        retryAfterSeconds: RETRY_AFTER_SECONDS,
      });
    }
    this.#usedBytes += bytes;
    return new DeclarationRoom(response, () => {
      this.#usedBytes -= bytes;
    });
  }
}

/** Held until the client has its answer or disconnects, and until nothing uses the body any more. */
export class DeclarationRoom {
  readonly #left = new AbortController();
  readonly #giveBack: () => void;
  #isInUse = false;

  constructor(response: ServerResponse, giveBack: () => void) {
    this.#giveBack = giveBack;
    const { socket } = response.req;
    const leave = () => {
      socket.off('close', leave);
      response.off('close', leave);
      this.#left.abort(new ApiProblem('request_malformed', 'the client left'));
      if (!this.#isInUse) this.#giveBack();
    };
    response.once('close', leave);
    // Node.js emits no `close` on a response that waits behind another one of the connection.
    socket.once('close', leave);
  }

  /** @param work skips parts that it has not begun when the signal aborts */
  async during<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const { signal } = this.#left;
    signal.throwIfAborted();
    this.#isInUse = true;
    try {
      return await work(signal);
    } finally {
      this.#isInUse = false;
      if (signal.aborted) this.#giveBack();
    }
  }
}
