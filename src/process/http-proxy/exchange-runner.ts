/** Serves the requests of all clients: limits how many are in progress, measures them, and reports when all have ended. */
import type { ClientExchange } from './client-exchange.ts';
import { problemOfProxyFault } from './proxy-faults.ts';
import { breakOff, respond, type Served } from './respond.ts';

export interface RunnerOptions {
  /** Maximum number of requests in progress; further ones are rejected. */
  readonly maxRequests: number;
  /** Maximum time that a client may leave the end of its answer unread, milliseconds. */
  readonly idleTimeoutMs: number;
  readonly metrics: RunnerMetrics;
  readonly onInternalError: (error: unknown) => void;
  readonly serve: (exchange: ClientExchange) => Promise<Served>;
}

export interface RunnerMetrics {
  refused(code: string): void;
  requests(open: number): void;
  served(status: StatusClass, seconds: number): void;
}

type StatusClass = '1xx' | '2xx' | '3xx' | '4xx' | '5xx' | 'gone';

/** An invalid HTTP status, such as 999, counts as 5xx (RFC 9110 section 15). */
const CLASS_OF_DIGIT: readonly (StatusClass | undefined)[] = [undefined, '1xx', '2xx', '3xx', '4xx'];

export class ExchangeRunner {
  readonly #options: RunnerOptions;
  /** Requests whose answer is not complete. */
  #inFlight = 0;
  /** Includes requests whose answer the client is still reading. */
  #open = 0;
  #onIdle: (() => void) | undefined;

  constructor(options: RunnerOptions) {
    this.#options = options;
  }

  /** Whether more than half of the places are taken. */
  get isBusy(): boolean {
    return this.#inFlight > this.#options.maxRequests / 2;
  }

  /** Resolves when every client has its response. */
  untilIdle(): Promise<void> {
    return new Promise((resolve) => {
      this.#onIdle = resolve;
      if (this.#open === 0) resolve();
    });
  }

  /** Answers a request. Never rejects. */
  async run(exchange: ClientExchange): Promise<void> {
    const { idleTimeoutMs, metrics } = this.#options;
    const { response } = exchange;
    const startedMs = performance.now();
    this.#open += 1;
    const closed = new Promise<void>((resolve) => response.onClosed(resolve));
    const served = await this.#answer(exchange);
    if (served !== 'gone') {
      // The client may still be reading the end of the response.
      const unread = setTimeout(() => response.destroy(), idleTimeoutMs);
      await closed;
      clearTimeout(unread);
    }
    const status = served === 'gone' ? served : CLASS_OF_DIGIT[Math.floor(served / 100)];
    metrics.served(status ?? '5xx', (performance.now() - startedMs) / 1000);
    this.#open -= 1;
    if (this.#open === 0) this.#onIdle?.();
  }

  /**
   * A client that does not read its answer must not delay others, so only requests without a complete answer count for
   * the limit.
   */
  async #answer(exchange: ClientExchange): Promise<Served> {
    const { maxRequests, metrics, onInternalError, serve } = this.#options;
    this.#inFlight += 1;
    metrics.requests(this.#inFlight);
    try {
      if (this.#inFlight <= maxRequests) return await serve(exchange);
      metrics.refused('overloaded');
      return respond(exchange.response, problemOfProxyFault('overloaded'));
    } catch (error) {
      onInternalError(error);
      return breakOff(exchange.response);
    } finally {
      this.#inFlight -= 1;
      metrics.requests(this.#inFlight);
    }
  }
}
