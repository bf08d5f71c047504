/** One request to the upstream over HTTP/2 and its response, for a handler of undici. */
import { type ClientHttp2Stream, constants } from 'node:http2';
import { Readable } from 'node:stream';
import { type Dispatcher, errors } from 'undici';
import { resetAfterParsing } from '../node-internals/http2-closing.ts';
import { withoutPseudoHeaders } from './http2-exchange.ts';
import {
  MAX_RESPONSE_HEADER_BYTES,
  type UpstreamController,
  type UpstreamOptions,
  type UpstreamRequest,
} from './upstream-pool.ts';

interface ExchangeOptions extends Pick<UpstreamOptions, 'idleTimeoutMs' | 'responseTimeoutMs'> {
  readonly onTimeout: () => void;
}

export class Http2UpstreamExchange implements UpstreamController {
  readonly protocolVersion = '2.0';
  readonly #handler: Dispatcher.DispatchHandler;
  readonly #options: ExchangeOptions;
  #stream: ClientHttp2Stream | undefined;
  #timer: NodeJS.Timeout | undefined;
  /** Whether END_STREAM has arrived. */
  #isWhole = false;
  /** Remaining bytes of the announced length; NaN without one. */
  #leftBytes = Number.NaN;
  #isOver = false;
  reason: Error | null = null;
  /** Header lines, with one character for each byte. */
  rawHeaders: string[] | null = null;
  rawTrailers: string[] | null = null;

  constructor(handler: Dispatcher.DispatchHandler, options: ExchangeOptions) {
    this.#handler = handler;
    this.#options = options;
  }

  get aborted(): boolean {
    return this.reason !== null;
  }

  get paused(): boolean {
    return this.#stream?.isPaused() ?? false;
  }

  abort(reason: Error): void {
    this.reason ??= reason;
    // A dead connection would never report that the stream is closed.
    this.#fail(reason);
    if (this.#stream !== undefined) leave(this.#stream);
  }

  pause(): void {
    clearTimeout(this.#timer);
    this.#stream?.pause();
  }

  resume(): void {
    this.#expectData();
    this.#stream?.resume();
  }

  /** @param stream just opened */
  run(stream: ClientHttp2Stream, body: UpstreamRequest['body']): void {
    this.#stream = stream;
    this.#expect(this.#options.responseTimeoutMs, new errors.HeadersTimeoutError());
    this.#sendBody(stream, body);
    this.#receive(stream);
    // `close` follows, and reports every error.
    stream.on('error', () => undefined);
    stream.once('close', () => {
      if (body instanceof Readable) body.destroy();
      // The response violates HTTP/2, so Node.js itself resets the stream.
      const isInvalid = stream.rstCode === constants.NGHTTP2_PROTOCOL_ERROR;
      this.#fail(isInvalid ? new errors.HTTPParserError() : new errors.SocketError());
    });
  }

  #sendBody(stream: ClientHttp2Stream, body: UpstreamRequest['body']): void {
    if (body === undefined) return;
    if (!(body instanceof Readable)) {
      stream.end(body);
      return;
    }
    body.on('error', (error) => this.abort(error));
    body.on('data', () => this.#timer?.refresh());
    body.pipe(stream);
  }

  #receive(stream: ClientHttp2Stream): void {
    noteEndOfStream(stream, () => {
      this.#isWhole = true;
    });
    stream.once('response', (headers, _flags, ...[lines]: unknown[]) => {
      this.rawHeaders = withoutPseudoHeaders(stringsOf(lines));
      if (this.rawHeaders.join('').length > MAX_RESPONSE_HEADER_BYTES) {
        this.abort(new errors.HeadersOverflowError());
        return;
      }
      this.#handler.onResponseStart?.(this, headers[':status'] ?? 0, headers);
      this.#leftBytes = Number(headers['content-length'] ?? Number.NaN);
      this.#expectData();
      stream.on('data', (chunk: Buffer) => {
        if (this.#isOver) return;
        this.#leftBytes -= chunk.length;
        this.#timer?.refresh();
        this.#handler.onResponseData?.(this, chunk);
      });
    });
    stream.once('trailers', (_trailers, _flags, ...[lines]: unknown[]) => {
      this.rawTrailers = stringsOf(lines);
    });
    stream.once('end', () => {
      // Servers of Node.js may reset a stream with NO_ERROR in place of its end.
      const isComplete = this.#leftBytes === 0 && stream.rstCode === constants.NGHTTP2_NO_ERROR;
      if (this.#isOver || !(this.#isWhole || isComplete)) return;
      this.#finish();
      this.#handler.onResponseEnd?.(this, {});
      // The upstream does not need the rest of the body.
      if (!stream.writableFinished) leave(stream);
    });
  }

  #expectData(): void {
    this.#expect(this.#options.idleTimeoutMs, new errors.BodyTimeoutError());
  }

  #expect(timeoutMs: number, error: Error): void {
    clearTimeout(this.#timer);
    if (this.#isOver) return;
    this.#timer = setTimeout(() => {
      this.abort(error);
      this.#options.onTimeout();
    }, timeoutMs);
  }

  #fail(error: Error): void {
    if (this.#isOver) return;
    this.#finish();
    this.#handler.onResponseError?.(this, error);
  }

  #finish(): void {
    this.#isOver = true;
    clearTimeout(this.#timer);
  }
}

/** Ends a request with an incomplete body so that it does not look complete. */
function leave(stream: ClientHttp2Stream): void {
  if (stream.writableEnded) stream.close(constants.NGHTTP2_CANCEL);
  else resetAfterParsing(stream);
}

/**
 * Node.js also ends the readable side when the stream was reset, then with `closed` set. Envoy resets with NO_ERROR
 * when a response is interrupted, which Node.js reports in no other way.
 */
function noteEndOfStream(stream: ClientHttp2Stream, listener: () => void): void {
  const push = stream.push.bind(stream);
  stream.push = (chunk: unknown, encoding?: BufferEncoding) => {
    if (chunk === null && !stream.closed) listener();
    return push(chunk, encoding);
  };
}

const stringsOf = (lines: unknown): string[] =>
  Array.isArray(lines) ? lines.filter((part) => typeof part === 'string') : [];
