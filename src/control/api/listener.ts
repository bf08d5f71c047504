/** The HTTP server under the API: bounded in time and room against clients that are slow on purpose. */
import { createServer, type RequestListener, type Server, STATUS_CODES } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { Socket } from 'node:net';
import { REFUSALS, type RefusalCode } from '../domain/refusal.ts';
import { PROBLEM_MEDIA_TYPE } from './problems.ts';

export interface ListenerOptions {
  /** PEM. Without it: plain HTTP. */
  readonly tls?: { readonly cert: string; readonly key: string } | undefined;
  /** Until a request's header fields must have come. */
  readonly headersTimeoutMs: number;
  /** Until the whole request must have come. */
  readonly requestTimeoutMs: number;
  /** How long a connection may lie idle between requests. */
  readonly keepAliveTimeoutMs: number;
  readonly maxConnections: number;
}

export const DEFAULT_LISTENER: ListenerOptions = {
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 30_000,
  keepAliveTimeoutMs: 65_000,
  maxConnections: 10_000,
};

const MAX_HEADER_BYTES = 32 * 1024;
/** How often Node looks for connections that are out of time. */
const TIMEOUT_CHECK_MS = 1000;

export function createListener(options: ListenerOptions, handler: RequestListener): Server {
  const http = {
    maxHeaderSize: MAX_HEADER_BYTES,
    headersTimeout: options.headersTimeoutMs,
    requestTimeout: options.requestTimeoutMs,
    keepAliveTimeout: options.keepAliveTimeoutMs,
    connectionsCheckingInterval: TIMEOUT_CHECK_MS,
    // RFC 9112 section 2.2: two readings of one message are how requests are smuggled.
    insecureHTTPParser: false,
  };
  const server =
    options.tls === undefined
      ? createServer(http, handler)
      : createTlsServer({ ...http, ...options.tls, minVersion: 'TLSv1.2' }, handler);
  server.maxConnections = options.maxConnections;
  return server;
}

/** What never became a request: bytes that are not HTTP, header fields without end, or too slow. */
export function answerClientError(error: Error & { readonly code?: string }, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const code = PARSER_CODES[error.code ?? ''] ?? 'request_malformed';
  const [status, title] = REFUSALS[code];
  const body = JSON.stringify({ type: `urn:proofgate:problem:${code}`, title, status, code });
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    'connection: close',
    `content-type: ${PROBLEM_MEDIA_TYPE}`,
    `content-length: ${Buffer.byteLength(body)}`,
  ];
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`);
}

/** Node's, of its HTTP parser. */
const PARSER_CODES: { readonly [code: string]: RefusalCode } = {
  ERR_HTTP_REQUEST_TIMEOUT: 'request_timeout',
  HPE_HEADER_OVERFLOW: 'headers_too_large',
};
