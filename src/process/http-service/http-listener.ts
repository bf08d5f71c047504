/** Creates the HTTP server under the API, with timeouts and size limits against slow clients. */
import { createServer, type RequestListener, type Server, STATUS_CODES } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { Socket } from 'node:net';
import type { FastifyRequest } from 'fastify';
import { hasTooManyLines, KEPT_HEADER_LINES } from '../../protocol/header-line-limit.ts';
import { readInTurns } from '../node-internals/read-turns.ts';
import { joinSmallChunks } from '../node-internals/small-chunks.ts';
import { COMMON_PROBLEMS, commonProblem } from './http-problem.ts';
import { PROBLEM_MEDIA_TYPE } from './problem-answers.ts';

export interface ListenerOptions {
  /** PEM. Absent: plain HTTP. */
  readonly tls?: { readonly cert: string; readonly key: string } | undefined;
  /** Maximum time until a request's header fields are complete. */
  readonly headersTimeoutMs: number;
  /** Maximum time until the whole request is complete. */
  readonly requestTimeoutMs: number;
  /** Maximum idle time of a connection between requests. */
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
/** How often Node checks connections for timeouts. */
const TIMEOUT_CHECK_MS = 1000;

export function createListener(options: ListenerOptions, handleRequest: RequestListener): Server {
  const handler = withJoinedChunks(handleRequest);
  const http = {
    maxHeaderSize: MAX_HEADER_BYTES,
    headersTimeout: options.headersTimeoutMs,
    requestTimeout: options.requestTimeoutMs,
    keepAliveTimeout: options.keepAliveTimeoutMs,
    connectionsCheckingInterval: TIMEOUT_CHECK_MS,
    // RFC 9112 section 2.2: a lenient parser enables request smuggling.
    insecureHTTPParser: false,
  };
  const server =
    options.tls === undefined
      ? createServer(http, handler)
      : createTlsServer({ ...http, ...options.tls, minVersion: 'TLSv1.2' }, handler);
  server.maxConnections = options.maxConnections;
  // `rejectTooManyHeaders` rejects a request with this number of headers.
  server.maxHeadersCount = KEPT_HEADER_LINES;
  server.on(options.tls === undefined ? 'connection' : 'secureConnection', readInTurns);
  return server;
}

/** Runs as the first hook, because later hooks cannot see all header lines of such a request. */
export async function rejectTooManyHeaders({ raw }: FastifyRequest): Promise<void> {
  if (hasTooManyLines(raw.rawHeaders)) throw commonProblem('headers_too_large');
}

/** Passes requests on and joins their small chunks while nothing reads them. */
export function withJoinedChunks(handler: RequestListener): RequestListener {
  return (request, response) => {
    joinSmallChunks(request);
    handler(request, response);
  };
}

/** Responds to input that never became a request: not HTTP, headers too large, or too slow. */
export function answerClientError(error: Error & { readonly code?: string }, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const code = PARSER_CODES[error.code ?? ''] ?? 'request_malformed';
  const [status, title] = COMMON_PROBLEMS[code];
  const body = JSON.stringify({ type: `urn:proofgate:problem:${code}`, title, status, code });
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    'connection: close',
    `content-type: ${PROBLEM_MEDIA_TYPE}`,
    `content-length: ${Buffer.byteLength(body)}`,
  ];
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`);
}

/** Codes of Node's HTTP parser. */
const PARSER_CODES: { readonly [code: string]: keyof typeof COMMON_PROBLEMS } = {
  ERR_HTTP_REQUEST_TIMEOUT: 'request_timeout',
  HPE_HEADER_OVERFLOW: 'headers_too_large',
};
