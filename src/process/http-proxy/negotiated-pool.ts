/** Connections to an `https` upstream, which selects HTTP/2 or HTTP/1.1 for each (ALPN, RFC 7301). */
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { type Dispatcher, errors } from 'undici';
import { hostOfUrl } from '../../protocol/url-host.ts';
import { Http2Upstream } from './http2-upstream.ts';
import {
  type Connector,
  type Http1Pool,
  openUpstreamPool,
  type UpstreamOptions,
  type UpstreamPool,
  type UpstreamRequest,
  upstreamConnector,
} from './upstream-pool.ts';

interface Waiting {
  readonly request: UpstreamRequest;
  readonly handler: Dispatcher.DispatchHandler;
}

/** @param origin `https` */
export function openNegotiatedPool(origin: URL, options: Omit<UpstreamOptions, 'address'>): UpstreamPool {
  return new NegotiatedPool(origin, { ...options, address: { kind: 'origin', origin } });
}

class NegotiatedPool implements UpstreamPool {
  readonly #origin: URL;
  readonly #options: UpstreamOptions;
  readonly #connector: Connector;
  readonly #http1: Http1Pool;
  readonly #http2 = new Set<Http2Upstream>();
  readonly #waiting = new Set<Waiting>();
  /** Open connections with HTTP/1.1. While there is one, undici opens further ones as it needs them. */
  #http1Connections = 0;
  /** The connection for which the upstream selected HTTP/1.1, until undici takes it. */
  #negotiated: Socket | undefined;
  #isConnecting = false;
  #isDestroyed = false;

  constructor(origin: URL, options: UpstreamOptions) {
    this.#origin = origin;
    this.#options = options;
    this.#connector = upstreamConnector(options, true);
    this.#http1 = openUpstreamPool(options, (current) => this.#http1Connector(current));
  }

  #http1Connector(options: UpstreamOptions): Connector {
    const connect = upstreamConnector(options, false);
    return (connected, callback) => {
      const negotiated = this.#negotiated;
      this.#negotiated = undefined;
      if (negotiated !== undefined) {
        // undici expects an asynchronous callback.
        queueMicrotask(() => callback(null, negotiated));
        return;
      }
      connect(connected, (...result) => {
        if (result[0] === null) this.#countHttp1(result[1]);
        callback(...result);
      });
    };
  }

  dispatch(request: UpstreamRequest, handler: Dispatcher.DispatchHandler): () => void {
    const waiting = { request, handler };
    this.#waiting.add(waiting);
    this.#serve();
    return () => this.#waiting.delete(waiting);
  }

  async destroy(): Promise<void> {
    this.#isDestroyed = true;
    for (const session of this.#http2) session.destroy();
    this.#negotiated?.destroy();
    this.#fail(new errors.ClientDestroyedError());
    await this.#http1.destroy();
  }

  #serve(): void {
    for (const waiting of this.#waiting) {
      const session = this.#withRoom();
      const pool = session === undefined && this.#http1Connections > 0 ? this.#http1 : undefined;
      if (session === undefined && pool === undefined) {
        this.#connect();
        return;
      }
      this.#waiting.delete(waiting);
      session?.send(waiting.request, waiting.handler);
      pool?.dispatch(waiting.request, waiting.handler);
    }
  }

  #withRoom(): Http2Upstream | undefined {
    for (const session of this.#http2) if (session.hasRoom) return session;
    return undefined;
  }

  #connect(): void {
    if (this.#isConnecting || this.#isDestroyed || this.#http2.size >= this.#options.maxConnections) return;
    this.#isConnecting = true;
    const { host, port, protocol } = this.#origin;
    const place = { host, hostname: hostOfUrl(this.#origin), port, protocol };
    this.#connector(place, (...[error, socket]) => {
      if (error !== null) this.#fail(error);
      else if (this.#isDestroyed) socket.destroy();
      else if (socket instanceof TLSSocket && socket.alpnProtocol === 'h2') this.#addHttp2(socket);
      else this.#addHttp1(socket);
    });
  }

  #addHttp1(socket: Socket): void {
    this.#isConnecting = false;
    this.#negotiated = socket;
    this.#countHttp1(socket);
    this.#serve();
  }

  #countHttp1(socket: Socket): void {
    this.#http1Connections += 1;
    socket.once('close', () => {
      this.#http1Connections -= 1;
      if (this.#negotiated === socket) this.#negotiated = undefined;
    });
  }

  #addHttp2(socket: Socket): void {
    const { idleTimeoutMs, responseTimeoutMs } = this.#options;
    let isReady = false;
    const session = new Http2Upstream(socket, {
      ...{ origin: this.#origin, idleTimeoutMs, responseTimeoutMs },
      onChange: () => {
        if (!isReady && session.hasRoom) {
          isReady = true;
          this.#isConnecting = false;
        }
        this.#serve();
      },
      onClosed: () => {
        this.#http2.delete(session);
        // The next connection would probably fail as well, so the waiting requests fail now.
        if (!isReady) this.#fail(new errors.SocketError('the connection took no request'));
        this.#serve();
      },
    });
    this.#http2.add(session);
  }

  /** Fails the requests that wait for a connection. */
  #fail(error: Error): void {
    this.#isConnecting = false;
    const failed = [...this.#waiting];
    this.#waiting.clear();
    for (const { handler } of failed) handler.onResponseError?.(NOT_STARTED, error);
  }
}

/** Controller of a request that no connection has taken. */
const NOT_STARTED: Dispatcher.DispatchController = {
  aborted: true,
  paused: false,
  reason: null,
  abort: () => undefined,
  pause: () => undefined,
  resume: () => undefined,
};
