/** HTTP/2 connections to the upstream. Each request is one stream, and is never sent a second time. */
import { validateHeaderName, validateHeaderValue } from 'node:http';
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  type OutgoingHttpHeaders,
  type SecureClientSessionOptions,
} from 'node:http2';
import type { Socket } from 'node:net';
import { type Dispatcher, errors } from 'undici';
import { headersOf } from './http2-exchange.ts';
import { closeWhenSilent } from './http2-liveness.ts';
import { Http2UpstreamExchange } from './http2-upstream-exchange.ts';
import { headerLines } from './raw-headers.ts';
import {
  CONNECT_TIMEOUT_MS,
  KEEP_ALIVE_MS,
  MAX_RESPONSE_HEADER_BYTES,
  type UpstreamOptions,
  type UpstreamRequest,
} from './upstream-pool.ts';

/** Maximum number of streams of a connection, even if the upstream allows more. */
const MAX_STREAMS = 256;
/** Number of bytes that the upstream may send on a stream that the client does not read. */
const STREAM_WINDOW_BYTES = 262_144;
/** Node.js reopens this window as data arrives, whether it is read or not, so it limits only data in transit. */
const CONNECTION_WINDOW_BYTES = 8_388_608;

/**
 * Larger headers look as if the upstream had reset the stream, and the setting applies only after the upstream has
 * acknowledged it. The actual limit is checked when headers have arrived.
 */
const NODE_HEADER_BYTES = 4 * MAX_RESPONSE_HEADER_BYTES;

const OPTIONS: SecureClientSessionOptions = {
  settings: {
    enablePush: false,
    initialWindowSize: STREAM_WINDOW_BYTES,
    maxHeaderListSize: NODE_HEADER_BYTES,
  },
  // A header counts 32 bytes and more (RFC 9113 section 6.5.2), so the size is the limit.
  maxHeaderListPairs: NODE_HEADER_BYTES / 32,
  // Megabytes. Beyond it Node.js rejects responses; the streams' bodies that wait to be sent count, at most 128 KiB each.
  maxSessionMemory: 64,
};

export interface SessionOptions extends Pick<UpstreamOptions, 'idleTimeoutMs' | 'responseTimeoutMs'> {
  readonly origin: URL;
  /** Called when the connection can accept another request, and when it accepts no more. */
  readonly onChange: () => void;
  /** Called once, when the connection ends. */
  readonly onClosed: () => void;
}

export class Http2Upstream {
  readonly #options: SessionOptions;
  readonly #session: ClientHttp2Session;
  #streams = 0;
  /** 0 until the upstream has sent its settings. */
  #maxStreams = 0;
  #isRetired = false;
  #timer: NodeJS.Timeout;

  /** @param socket a TLS connection for which the upstream has selected `h2` */
  constructor(socket: Socket, options: SessionOptions) {
    const session = connect(options.origin, { ...OPTIONS, createConnection: () => socket });
    this.#options = options;
    this.#session = session;
    this.#timer = setTimeout(() => session.destroy(), CONNECT_TIMEOUT_MS);
    session.setLocalWindowSize(CONNECTION_WINDOW_BYTES);
    session.on('remoteSettings', ({ maxConcurrentStreams = MAX_STREAMS }) => {
      this.#maxStreams = Math.min(maxConcurrentStreams, MAX_STREAMS);
      if (this.hasRoom) this.#change();
    });
    session.on('goaway', () => this.retire());
    // The connection's streams fail as well.
    session.on('error', () => undefined);
    session.once('close', () => {
      clearTimeout(this.#timer);
      options.onClosed();
    });
    closeWhenSilent(session);
  }

  /** Whether {@link send} may be called. */
  get hasRoom(): boolean {
    const { closed, destroyed } = this.#session;
    return !this.#isRetired && !closed && !destroyed && this.#streams < this.#maxStreams;
  }

  send(request: UpstreamRequest, handler: Dispatcher.DispatchHandler): void {
    const { idleTimeoutMs, responseTimeoutMs } = this.#options;
    // After a time-out the connection may be dead.
    const onTimeout = () => this.retire();
    const exchange = new Http2UpstreamExchange(handler, { idleTimeoutMs, responseTimeoutMs, onTimeout });
    handler.onRequestStart?.(exchange, {});
    if (exchange.aborted) return;
    let stream: ClientHttp2Stream;
    try {
      stream = this.#session.request(requestHeaders(request), { endStream: request.body === undefined });
    } catch (error) {
      handler.onResponseError?.(exchange, new errors.InvalidArgumentError(String(error)));
      return;
    }
    this.#streams += 1;
    clearTimeout(this.#timer);
    stream.once('close', () => {
      this.#streams -= 1;
      // Never opened: the connection is out of stream identifiers.
      if (stream.pending) this.#isRetired = true;
      this.#change();
    });
    exchange.run(stream, request.body);
  }

  /** Accepts no more requests and closes after the last response. */
  retire(): void {
    this.#isRetired = true;
    this.#change();
  }

  destroy(): void {
    this.#session.destroy();
  }

  #change(): void {
    if (this.#streams === 0) {
      clearTimeout(this.#timer);
      if (this.#isRetired) this.#session.destroy();
      else this.#timer = setTimeout(() => this.retire(), KEEP_ALIVE_MS).unref();
    }
    this.#options.onChange();
  }
}

/**
 * @throws Error for a name or value that HTTP cannot carry, and for header lines that node:http2 does not send more
 * than once
 */
function requestHeaders({ headers, lengthBytes, method, target }: UpstreamRequest): OutgoingHttpHeaders {
  const lines = headerLines(headers);
  for (const [name, value] of lines) {
    // node:http2 ends the whole connection for a bad name, and does not check values.
    validateHeaderName(name);
    validateHeaderValue(name, value);
  }
  const isHost = ([name]: readonly [string, string]) => name.toLowerCase() === 'host';
  return {
    ...headersOf(lines.filter((line) => !isHost(line))),
    ':method': method,
    ':scheme': 'https',
    ':authority': lines.find(isHost)?.[1] ?? '',
    ':path': target,
    ...(lengthBytes === undefined ? {} : { 'content-length': lengthBytes }),
  };
}
