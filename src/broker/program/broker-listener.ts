/**
 * The broker's listener: TLS that asks for client certificates and resumes no session, plain HTTP on loopback, or a Unix
 * socket. Hands connections to the HTTP server of the application.
 * Source: docs/operate/broker.md "Connections".
 */
import { createServer, type RequestListener, type Server } from 'node:http';
import {
  type ConnectionMetrics,
  openConnectionListener,
} from '../../process/connections/connection-listener.ts';
import type { ServerTls, TlsMaterial } from '../../process/connections/tls-material.ts';
import { withJoinedChunks } from '../../process/http-service/http-listener.ts';
import { readInTurns } from '../../process/node-internals/read-turns.ts';
import { withinMs } from '../../process/program/time-limit.ts';
import { KEPT_HEADER_LINES } from '../../protocol/header-line-limit.ts';
import type { ClientConnections } from './client-connections.ts';

const MAX_HEADER_BYTES = 32 * 1024;
const HEADERS_TIMEOUT_MS = 10_000;
const REQUEST_TIMEOUT_MS = 30_000;
const KEEP_ALIVE_TIMEOUT_MS = 65_000;
const TIMEOUT_CHECK_MS = 1_000;

/** An HTTP server without a socket of its own. */
export function createBrokerServer(handler: RequestListener): Server {
  const server = createServer(
    {
      maxHeaderSize: MAX_HEADER_BYTES,
      headersTimeout: HEADERS_TIMEOUT_MS,
      requestTimeout: REQUEST_TIMEOUT_MS,
      keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
      connectionsCheckingInterval: TIMEOUT_CHECK_MS,
      // RFC 9112 section 2.2: a lenient parser enables request smuggling.
      insecureHTTPParser: false,
    },
    withJoinedChunks(handler),
  );
  // `rejectTooManyHeaders` rejects a request with this number of headers.
  server.maxHeadersCount = KEPT_HEADER_LINES;
  // Starts the check of time-outs, which Node.js otherwise starts when the server itself listens.
  server.emit('listening');
  return server;
}

export interface BrokerListenerOptions {
  /** `HOST:PORT` (port 0 picks a free one) or `unix:PATH`. */
  readonly listen: string;
  readonly tls: ServerTls | undefined;
  readonly maxConnections: number;
  readonly metrics: ConnectionMetrics;
  readonly connections: ClientConnections;
  /** From {@link createBrokerServer}. */
  readonly server: Server;
}

export interface BrokerListener {
  /** Address it listens on, with the actual port. */
  readonly address: string;
  /** @throws TlsMaterialError, and keeps the current material */
  setTlsMaterial(material: TlsMaterial): void;
  /** Stops accepting, closes idle connections, and waits for requests in progress, at most for the given time. */
  drain(timeoutMs: number): Promise<void>;
}

/** @throws ListenError */
export async function openBrokerListener(options: BrokerListenerOptions): Promise<BrokerListener> {
  const { connections, server } = options;
  server.prependListener('request', (request, response) => connections.begin(request, response));
  const listener = await openConnectionListener({
    listen: options.listen,
    maxConnections: options.maxConnections,
    tls: options.tls && { ...options.tls, leavesClientsUnverified: true },
    protocols: ['http/1.1'],
    metrics: options.metrics,
    onConnection(socket) {
      connections.take(socket);
      readInTurns(socket);
      server.emit('connection', socket);
    },
  });
  return {
    address: listener.address,
    setTlsMaterial: (material) => listener.setTlsMaterial(material),
    async drain(timeoutMs) {
      listener.stop();
      await withinMs(timeoutMs, connections.drain(), undefined);
      server.closeAllConnections();
      // Stops the check of time-outs.
      server.close();
      listener.destroy();
      await listener.closed;
    },
  };
}
