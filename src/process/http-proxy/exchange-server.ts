/** HTTP/1.1 and HTTP/2 on one listener: hands the requests of its clients to a handler. */

import { type ConnectionMetrics, openConnectionListener } from '../connections/connection-listener.ts';
import type { ServerTls, TlsMaterial } from '../connections/tls-material.ts';
import type { ClientExchange } from './client-exchange.ts';
import { dispatchConnection } from './connection-protocol.ts';
import { createHttp1Server } from './http1-server.ts';
import { createHttp2Server } from './http2-server.ts';

export interface ExchangeServerOptions {
  /** `HOST:PORT` (port 0 picks a free one) or `unix:PATH`. */
  readonly listen: string;
  /** Undefined for plaintext, in which HTTP/2 needs prior knowledge (RFC 9113 section 3.3). */
  readonly tls: ServerTls | undefined;
  /** Maximum number of client connections; further ones are closed at once. */
  readonly maxConnections: number;
  readonly metrics: ConnectionMetrics & { refused(code: string): void };
  readonly handle: (exchange: ClientExchange) => void;
  /** Resolves when every client has its response. */
  readonly untilIdle: () => Promise<void>;
}

export interface ExchangeServer {
  /** Address it listens on, with the actual port. */
  readonly address: string;
  /** Uses the material for new handshakes. @throws TlsMaterialError, and keeps the current material */
  setTlsMaterial(material: TlsMaterial): void;
  /** Stops accepting, closes idle connections, and waits for requests in progress, at most for the given time. */
  drain(timeoutMs: number): Promise<void>;
}

/** @throws ListenError */
export async function openExchangeServer(options: ExchangeServerOptions): Promise<ExchangeServer> {
  const { handle, listen, maxConnections, metrics, tls, untilIdle } = options;
  const http1 = createHttp1Server({ handle, onRefused: metrics.refused });
  const http2 = createHttp2Server(handle);
  const listener = await openConnectionListener({
    listen,
    maxConnections,
    tls,
    protocols: ['h2', 'http/1.1'],
    metrics,
    onConnection: (connection) =>
      dispatchConnection(connection, {
        http1: (socket) => http1.server.emit('connection', socket),
        http2: (socket) => http2.server.emit('connection', socket),
      }),
  }).catch((error: unknown) => {
    http1.destroy();
    throw error;
  });
  return {
    address: listener.address,
    setTlsMaterial: (material) => listener.setTlsMaterial(material),
    drain: async (timeoutMs) => {
      listener.stop();
      http1.close();
      http2.close();
      await within(timeoutMs, untilIdle());
      http1.destroy();
      http2.destroy();
      listener.destroy();
      await listener.closed;
    },
  };
}

function within(timeoutMs: number, idle: Promise<void>): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, timeoutMs);
    void idle.then(() => {
      clearTimeout(timer);
      resolve();
    });
  });
}
