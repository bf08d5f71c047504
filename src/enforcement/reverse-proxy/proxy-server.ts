/**
 * The reverse proxy: HTTP/1.1 and HTTP/2 from clients to one upstream. It forwards what the verifier allows.
 * Source: docs/proxy.md.
 */
import { withinMs } from '../../verifier/time-limit.ts';
import { openConnectionListener } from '../connections/connection-listener.ts';
import type { ServerTls, TlsMaterial } from '../connections/tls-material.ts';
import type { ClientExchange } from './client-exchange.ts';
import { dispatchConnection } from './connection-protocol.ts';
import { type ProxyParts, RequestHandler } from './handle-request.ts';
import { createHttp1Server } from './http1-server.ts';
import { createHttp2Server } from './http2-server.ts';

export interface ProxyServerOptions extends ProxyParts {
  /** `HOST:PORT` (port 0 picks a free one) or `unix:PATH`. */
  readonly listen: string;
  /** Undefined: plaintext; HTTP/2 with prior knowledge (RFC 9113 section 3.3). */
  readonly tls: ServerTls | undefined;
  /** Maximum number of client connections; further ones are closed at once. */
  readonly maxConnections: number;
  /** Called before the server listens. */
  readonly beforeListening?: () => void;
}

export interface ProxyServer {
  /** Address it listens on, with the actual port. */
  readonly address: string;
  /** Uses the material for new handshakes. @throws TlsMaterialError, and keeps the current material */
  setTlsMaterial(material: TlsMaterial): void;
  /** Stops accepting, closes idle connections, and waits for requests in progress, at most for the given time. */
  drain(timeoutMs: number): Promise<void>;
}

/** @throws ListenError */
export async function openProxyServer(options: ProxyServerOptions): Promise<ProxyServer> {
  const { metrics, pool } = options;
  const handler = new RequestHandler(options);
  const handle = (exchange: ClientExchange) => void handler.handle(exchange);
  const http1 = createHttp1Server({ handle, onRefused: metrics.refused });
  const http2 = createHttp2Server(handle);
  options.beforeListening?.();
  const listener = await openConnectionListener({
    listen: options.listen,
    maxConnections: options.maxConnections,
    tls: options.tls,
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
      await withinMs(timeoutMs, handler.untilIdle(), undefined);
      http1.destroy();
      http2.destroy();
      listener.destroy();
      await listener.closed;
      await pool.destroy();
    },
  };
}
