/** A node:http server with every limit set, which gets its connections from the listener. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { KEPT_HEADER_LINES } from '../../protocol/header-line-limit.ts';
import {
  followsIgnoredUpgrade,
  hasIgnoredUpgrade,
  ignoringUpgrades,
} from '../node-internals/ignored-upgrades.ts';
import type { ClientExchange } from './client-exchange.ts';
import { http1Exchange, http1UpgradeExchange } from './http1-exchange.ts';
import { offersOnlyHttp2 } from './http2-offer.ts';
import { type ProxyFaultCode, problemOfProxyFault } from './proxy-faults.ts';

/** Envoy's default is 60 KiB. */
export const MAX_HEADER_BYTES = 65_536;
/** Maximum time to send the head of a request (slowloris), and between two requests of a connection. */
export const HEADERS_TIMEOUT_MS = 10_000;
export const KEEP_ALIVE_TIMEOUT_MS = 75_000;

export interface Http1ServerOptions {
  readonly handle: (exchange: ClientExchange) => void;
  readonly onRefused: (code: ProxyFaultCode) => void;
}

export interface Http1Connections {
  readonly server: Server;
  /** Closes idle connections, and the others after their current response. */
  close(): void;
  destroy(): void;
}

export function createHttp1Server({ handle, onRefused }: Http1ServerOptions): Http1Connections {
  const server = createServer({
    IncomingMessage: ignoringUpgrades(offersOnlyHttp2),
    insecureHTTPParser: false,
    maxHeaderSize: MAX_HEADER_BYTES,
    headersTimeout: HEADERS_TIMEOUT_MS,
    // Bodies have their own limits, because a stream may take any time.
    requestTimeout: 0,
    connectionsCheckingInterval: 1_000,
    keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
    // A missing Host gets a problem like every other fault.
    requireHostHeader: false,
  });
  // `request-head.ts` and the signing API reject a request with this number of lines.
  server.maxHeadersCount = KEPT_HEADER_LINES;
  server.timeout = 0;
  let draining = false;
  const isDraining = () => draining;
  const take = (expectsContinue: boolean) => (request: IncomingMessage, response: ServerResponse) => {
    if (followsIgnoredUpgrade(request)) {
      request.socket.destroy();
      return;
    }
    if (hasIgnoredUpgrade(request)) response.shouldKeepAlive = false;
    handle(http1Exchange(request, response, { expectsContinue, isDraining }));
  };
  server.on('request', take(false));
  server.on('checkContinue', take(true));
  server.on('checkExpectation', take(false));
  server.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
    // The connection cannot switch protocols before the previous response has ended; Node.js would throw.
    if (draining || responseInProgress(socket) !== undefined || followsIgnoredUpgrade(request)) {
      onRefused('upgrade_refused');
      socket.destroy();
      return;
    }
    handle(http1UpgradeExchange(request, socket, head));
  });
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
    const code = PARSER_FAULTS[error.code ?? ''] ?? 'request_malformed';
    onRefused(code);
    endWithProblem(socket, code);
  });
  server.on('connect', (_request: IncomingMessage, socket: Socket) => {
    onRefused('request_malformed');
    endWithProblem(socket, 'request_malformed');
  });
  // Starts the check of time-outs, which Node.js otherwise starts when the server itself listens.
  server.emit('listening');
  return {
    server,
    close: () => {
      draining = true;
      server.closeIdleConnections();
    },
    destroy: () => {
      server.closeAllConnections();
      // Stops the check of time-outs.
      server.close();
    },
  };
}

const PARSER_FAULTS: { readonly [code: string]: ProxyFaultCode } = {
  HPE_HEADER_OVERFLOW: 'headers_too_large',
  ERR_HTTP_REQUEST_TIMEOUT: 'request_timeout',
};

/** Answers on a connection that must end. It writes the response to the socket, unless another response is in progress. */
function endWithProblem(socket: Socket, code: ProxyFaultCode): void {
  if (!socket.writable || responseInProgress(socket)?.headersSent === true) {
    socket.destroy();
    return;
  }
  const { body, headers, status } = problemOfProxyFault(code);
  const lines = [
    `HTTP/1.1 ${status} ${code}`,
    ...headers.map(([name, value]) => `${name}: ${value}`),
    `content-length: ${Buffer.byteLength(body)}`,
    'connection: close',
  ];
  socket.end(`${lines.join('\r\n')}\r\n\r\n${body}`, () => socket.destroy());
}

/**
 * Node.js links the response in progress to its connection; the `clientError` listener in its documentation also reads
 * it.
 */
function responseInProgress(socket: Socket): ServerResponse | undefined {
  return (socket as Socket & { readonly _httpMessage?: ServerResponse | null })._httpMessage ?? undefined;
}
