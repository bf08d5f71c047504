/** Sends a verified request to the upstream and relays the response to the client as it arrives, with back-pressure. */
import type { Duplex } from 'node:stream';
import { type Dispatcher, errors } from 'undici';
import { BodyTimeout } from './body-stream.ts';
import type { ClientResponse, HeaderLines } from './client-exchange.ts';
import type { ProxyFaultCode } from './proxy-faults.ts';
import { headerLines } from './raw-headers.ts';
import { responseLines, trailerLines } from './response-lines.ts';
import type { UpstreamController, UpstreamPool, UpstreamRequest } from './upstream-pool.ts';

export type ForwardOutcome =
  | { readonly kind: 'completed'; readonly status: number }
  /** The upstream switched protocols; nothing has been sent to the client. */
  | { readonly kind: 'upgraded'; readonly socket: Duplex; readonly lines: HeaderLines }
  /** Nothing has been sent to the client. */
  | { readonly kind: 'failed'; readonly code: ProxyFaultCode }
  /** The response was interrupted after it had begun. */
  | { readonly kind: 'broken'; readonly code: ProxyFaultCode; readonly status: number }
  | { readonly kind: 'client_gone' }
  /** {@link ForwardOptions.declines} took the answer; nothing has been sent to the client. */
  | { readonly kind: 'declined' };

export interface ForwardOptions {
  readonly pool: UpstreamPool;
  readonly request: UpstreamRequest;
  readonly response: ClientResponse;
  /** Whether the client accepts trailers (RFC 9110 section 6.5.1). */
  readonly acceptsTrailers: boolean;
  /** Response headers that the client must not get from the upstream: lower case. */
  readonly withheld: ReadonlySet<string>;
  /** Further lines for the client, given those of the upstream. */
  readonly linesBeside?: (upstream: HeaderLines) => HeaderLines;
  /** Whether the answer is not for the client. Called once, with status and headers. */
  readonly declines?: (status: number, upstream: HeaderLines) => boolean;
  /** Maximum time to wait for a free connection, milliseconds. */
  readonly queueTimeoutMs: number;
  /** Maximum time that a client may leave sent data unread, milliseconds. */
  readonly idleTimeoutMs: number;
}

export function forward(options: ForwardOptions): Promise<ForwardOutcome> {
  return new Promise((resolve) => new ResponseRelay(options, resolve).start());
}

class ResponseRelay implements Dispatcher.DispatchHandler {
  readonly #options: ForwardOptions;
  readonly #resolve: (outcome: ForwardOutcome) => void;
  readonly #queueTimer: NodeJS.Timeout;
  #controller: Dispatcher.DispatchController | undefined;
  /** Removes the request from the pool's queue. */
  #cancel: (() => void) | undefined;
  #drainTimer: NodeJS.Timeout | undefined;
  #status = 0;
  #isSettled = false;

  constructor(options: ForwardOptions, resolve: (outcome: ForwardOutcome) => void) {
    this.#options = options;
    this.#resolve = resolve;
    this.#queueTimer = setTimeout(() => this.#fail('upstream_busy'), options.queueTimeoutMs);
    options.response.onGone(() => this.#settle({ kind: 'client_gone' }));
  }

  start(): void {
    if (!this.#isSettled) this.#cancel = this.#options.pool.dispatch(this.#options.request, this);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    clearTimeout(this.#queueTimer);
    this.#controller = controller;
    if (this.#isSettled) controller.abort(new Error('the client has left'));
  }

  onRequestUpgrade(
    controller: Dispatcher.DispatchController,
    _status: number,
    _headers: unknown,
    socket: Duplex,
  ): void {
    if (this.#isSettled) {
      socket.destroy();
      return;
    }
    this.#settle({ kind: 'upgraded', socket, lines: linesOf(controller.rawHeaders) });
  }

  onResponseStart(controller: UpstreamController, status: number): void {
    // Interim responses are for this hop only; the client gets its own.
    if (this.#isSettled || status < 200) return;
    const { acceptsTrailers, declines, linesBeside, response, withheld } = this.#options;
    try {
      const { protocolVersion = '1.1' } = controller;
      const head = { status, protocolVersion, acceptsTrailers, withheld } as const;
      const upstream = linesOf(controller.rawHeaders);
      if (declines?.(status, upstream)) {
        this.#settle({ kind: 'declined' });
        return;
      }
      const lines = [...responseLines(upstream, head), ...(linesBeside?.(upstream) ?? [])];
      this.#status = status;
      response.begin(status, lines, acceptsTrailers);
    } catch {
      this.#fail('upstream_response_invalid');
    }
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#isSettled || this.#options.response.write(chunk)) return;
    controller.pause();
    this.#drainTimer = setTimeout(() => this.#settle({ kind: 'client_gone' }), this.#options.idleTimeoutMs);
    this.#options.response.onceDrained(() => {
      clearTimeout(this.#drainTimer);
      // A write for another client may have drained this one while undici's only parser is running.
      process.nextTick(() => !this.#isSettled && controller.resume());
    });
  }

  onResponseEnd(controller: Dispatcher.DispatchController): void {
    if (this.#isSettled) return;
    const { acceptsTrailers, response } = this.#options;
    response.end(acceptsTrailers ? trailerLines(linesOf(controller.rawTrailers)) : []);
    this.#settle({ kind: 'completed', status: this.#status });
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#fail(faultOf(error));
  }

  #fail(code: ProxyFaultCode): void {
    const hasBegun = this.#options.response.hasBegun();
    this.#settle(hasBegun ? { kind: 'broken', code, status: this.#status } : { kind: 'failed', code });
  }

  /** However the exchange ends, the upstream's request ends with it, and a partial response does not look complete. */
  #settle(outcome: ForwardOutcome): void {
    if (this.#isSettled) return;
    this.#isSettled = true;
    clearTimeout(this.#queueTimer);
    clearTimeout(this.#drainTimer);
    if (outcome.kind === 'broken' || outcome.kind === 'client_gone') this.#options.response.destroy();
    if (outcome.kind !== 'completed' && outcome.kind !== 'upgraded') {
      this.#cancel?.();
      this.#controller?.abort(new Error(outcome.kind));
    }
    this.#resolve(outcome);
  }
}

/** Alternating names and values: buffers from undici, strings from the HTTP/2 client. */
function linesOf(raw: Dispatcher.DispatchController['rawHeaders']): HeaderLines {
  if (!Array.isArray(raw)) return [];
  return headerLines(raw.map((part) => (typeof part === 'string' ? part : part.toString('latin1'))));
}

function faultOf(error: Error): ProxyFaultCode {
  if (error instanceof BodyTimeout) return 'body_timeout';
  if (error instanceof errors.ConnectTimeoutError) return 'upstream_timeout';
  if (error instanceof errors.HeadersTimeoutError) return 'upstream_timeout';
  if (error instanceof errors.BodyTimeoutError) return 'upstream_timeout';
  if (error instanceof errors.HTTPParserError) return 'upstream_response_invalid';
  if (error instanceof errors.HeadersOverflowError) return 'upstream_response_invalid';
  if (error instanceof errors.ResponseContentLengthMismatchError) return 'upstream_response_invalid';
  if (error instanceof errors.InvalidArgumentError) return 'request_not_forwardable';
  if (error instanceof errors.SocketError) return 'upstream_closed';
  const code = 'code' in error ? error.code : undefined;
  return code === 'ECONNRESET' || code === 'EPIPE' ? 'upstream_closed' : 'upstream_unreachable';
}
