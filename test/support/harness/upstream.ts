/** The API behind the gateway: records what it receives, byte for byte, and returns it in its response. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import {
  createServer as createH2cServer,
  type Http2ServerRequest,
  type Http2ServerResponse,
  type ServerHttp2Session,
} from 'node:http2';
import type { Server, Socket } from 'node:net';
import { type HeaderLine, pairs } from '../../../src/tools/conformance/wire/exchange.ts';

export interface UpstreamRequest {
  readonly method: string;
  /** The request target as received. */
  readonly url: string;
  readonly httpVersion: string;
  /** Spelling, order and repetitions as received; HTTP/2 pseudo headers included. */
  readonly headers: readonly HeaderLine[];
  readonly trailers: readonly HeaderLine[];
  readonly body: Buffer;
}

export interface UpstreamOptions {
  readonly protocol?: 'HTTP/1.1' | 'h2c';
  /** `echo` (default) answers with the request as JSON ({@link Echo}); `short` with a few bytes, for measuring. */
  readonly answer?: 'echo' | 'short';
  /** Further headers of every answer. */
  readonly answerHeaders?: readonly HeaderLine[];
  /** Default true; false keeps nothing, for measuring. */
  readonly record?: boolean;
  /** Default 0: any free port. */
  readonly port?: number;
  readonly host?: string;
}

/** The JSON of an `echo` answer. */
export interface Echo {
  readonly method: string;
  readonly url: string;
  readonly headers: readonly HeaderLine[];
  readonly trailers: readonly HeaderLine[];
  readonly bodyBase64: string;
}

export interface Upstream {
  readonly host: string;
  readonly port: number;
  readonly requests: readonly UpstreamRequest[];
  clear(): void;
  stop(): Promise<void>;
}

const maxHeaderBytes = 131_072;

export async function startUpstream(options: UpstreamOptions = {}): Promise<Upstream> {
  const requests: UpstreamRequest[] = [];
  const answer = answerer(options, requests);
  const extra = options.answerHeaders ?? [];
  const server =
    options.protocol === 'h2c'
      ? createH2cServer({ maxHeaderListPairs: 1000 }, (request, response) =>
          receive(request, response, answer, extra),
        )
      : createServer({ maxHeaderSize: maxHeaderBytes }, (request, response) =>
          receive(request, response, answer, extra),
        );
  // Node.js would silently drop all lines after about 1,000.
  if ('maxHeadersCount' in server) server.maxHeadersCount = 0;
  // Envoy keeps idle connections, and a request that it sends as one is closed gets a 503.
  if ('keepAliveTimeout' in server) server.keepAliveTimeout = 0;
  const connections = trackConnections(server);
  const host = options.host ?? '127.0.0.1';
  const port = await listen(server, host, options.port ?? 0);
  return {
    host,
    port,
    requests,
    clear: () => void requests.splice(0),
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const connection of connections) connection.destroy();
      }),
  };
}

type Answer = (request: UpstreamRequest) => string;

function answerer(options: UpstreamOptions, requests: UpstreamRequest[]): Answer {
  return (request) => {
    if (options.record !== false) requests.push(request);
    if (options.answer === 'short') return '{"ok":true}';
    const { method, url, headers, trailers, body } = request;
    return JSON.stringify({
      method,
      url,
      headers,
      trailers,
      bodyBase64: body.toString('base64'),
    } satisfies Echo);
  };
}

function receive(
  request: IncomingMessage | Http2ServerRequest,
  response: ServerResponse | Http2ServerResponse,
  answer: Answer,
  extraHeaders: readonly HeaderLine[],
): void {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('error', () => response.destroy());
  request.on('end', () => {
    const text = answer({
      method: request.method ?? '',
      url: request.url ?? '',
      httpVersion: request.httpVersion,
      headers: pairs(request.rawHeaders),
      trailers: pairs(request.rawTrailers),
      body: Buffer.concat(chunks),
    });
    for (const [name, value] of extraHeaders) response.setHeader(name, value);
    response.setHeader('content-type', 'application/json');
    response.setHeader('content-length', Buffer.byteLength(text));
    response.end(text);
  });
}

interface Closable {
  destroy(): void;
}

function trackConnections(server: Server): ReadonlySet<Closable> {
  const open = new Set<Closable>();
  const track = (connection: Socket | ServerHttp2Session) => {
    open.add(connection);
    connection.on('close', () => open.delete(connection));
  };
  server.on('connection', track);
  server.on('session', track);
  return open;
}

function listen(server: Server, host: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.on('error', reject);
    server.listen(port, host, () => {
      const address = server.address();
      resolve(typeof address === 'object' && address !== null ? address.port : 0);
    });
  });
}
