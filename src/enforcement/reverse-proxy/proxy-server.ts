/**
 * The reverse proxy: HTTP/1.1 and HTTP/2 from clients to one upstream. It forwards what the verifier allows.
 * Source: docs/operate/proxy.md.
 */
import {
  type ExchangeServer,
  type ExchangeServerOptions,
  openExchangeServer,
} from '../../process/http-proxy/exchange-server.ts';
import { type ProxyParts, RequestHandler } from './handle-request.ts';

export interface ProxyServerOptions
  extends ProxyParts,
    Pick<ExchangeServerOptions, 'listen' | 'tls' | 'maxConnections'> {
  /** Called before the server listens. */
  readonly beforeListening?: () => void;
}

export type ProxyServer = ExchangeServer;

/** @throws ListenError */
export async function openProxyServer(options: ProxyServerOptions): Promise<ProxyServer> {
  const { listen, maxConnections, metrics, pool, tls } = options;
  const handler = new RequestHandler(options);
  options.beforeListening?.();
  const server = await openExchangeServer({
    listen,
    tls,
    maxConnections,
    metrics,
    handle: (exchange) => void handler.handle(exchange),
    untilIdle: () => handler.untilIdle(),
  });
  return {
    ...server,
    drain: async (timeoutMs) => {
      await server.drain(timeoutMs);
      await pool.destroy();
    },
  };
}
