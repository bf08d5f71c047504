/**
 * A proxy in front of a server, over real HTTP, that loses, delays, cuts and throttles as networks and proxies do. A script
 * assigns a fault to each exchange; the server's action and the client's view may differ.
 */
import {
  createServer,
  request as httpRequest,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { Socket } from 'node:net';

export const FAULTS = [
  /** Nothing goes wrong. */
  'pass',
  /** The connection is reset; the server saw nothing. */
  'reset_before',
  /** The server acted; the connection is reset without an answer. */
  'reset_after',
  /** The server acted; the connection ends in order without an answer. */
  'drop_answer',
  /** The server acted; the answer never comes. */
  'hold_answer',
  /** The request reaches the server only after the client gave up. */
  'arrive_late',
  /** The server acted; half of the answer arrives. */
  'truncate',
  /** The server acted; the client gets an unreadable answer. */
  'garble',
  /** The server saw nothing; 429 with Retry-After. */
  'throttle',
  /** The server acted; 429 arrives in place of its answer. */
  'throttle_after',
  /** The server saw nothing; 503 with Retry-After, from a proxy. */
  'unavailable',
  /** The server acted; a page of a proxy that gave up arrives (504). */
  'gateway_timeout',
  /** The request reaches the server twice, one after the other; the second answer arrives. */
  'duplicate',
  /** Sent to somewhere else. */
  'redirect',
] as const;
export type Fault = (typeof FAULTS)[number];

export interface Exchange {
  /** From 0, in the order of arrival. */
  readonly index: number;
  readonly method: string;
  readonly path: string;
}

export interface LossyProxy {
  readonly url: string;
  readonly exchanges: readonly Exchange[];
  /** Resolves when no request is in transit. */
  settled(): Promise<void>;
  close(): Promise<void>;
}

interface WholeAnswer {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly body: Buffer;
}

/** @param faultOf may wait before it answers: the exchange is held up until then */
export async function startLossyProxy(
  upstreamUrl: () => string,
  faultOf: (exchange: Exchange) => Fault | Promise<Fault>,
): Promise<LossyProxy> {
  const exchanges: Exchange[] = [];
  const underWay = new Set<Promise<void>>();
  const server = createServer((request, response) => {
    const exchange = { index: exchanges.length, method: request.method ?? '', path: request.url ?? '' };
    exchanges.push(exchange);
    const done = serve(request, response, () => faultOf(exchange), upstreamUrl()).finally(() =>
      underWay.delete(done),
    );
    underWay.add(done);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${portOf(server)}`,
    exchanges,
    settled: async () => void (await Promise.all(underWay)),
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function portOf(server: Server): number {
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('not listening');
  return address.port;
}

async function serve(
  request: IncomingMessage,
  response: ServerResponse,
  faultOf: () => Fault | Promise<Fault>,
  upstreamUrl: string,
): Promise<void> {
  const body = await bodyOf(request);
  const { socket } = request;
  const gone = closed(socket);
  const forward = () => forwardTo(upstreamUrl, request, body);
  const fault = await faultOf();
  switch (fault) {
    case 'pass':
      return deliver(response, await forward());
    case 'duplicate':
      await forward();
      return deliver(response, await forward());
    case 'reset_before':
      socket.resetAndDestroy();
      return;
    case 'reset_after':
      await forward();
      socket.resetAndDestroy();
      return;
    case 'drop_answer':
      await forward();
      socket.end();
      return;
    case 'hold_answer':
      await forward();
      return gone;
    case 'arrive_late':
      await gone;
      await forward();
      return;
    case 'truncate':
      return truncate(response, await forward(), socket);
    default:
      return replace(fault, response, forward);
  }
}

/** Faults that put another answer in the place of the server's. */
async function replace(
  fault: Fault,
  response: ServerResponse,
  forward: () => Promise<WholeAnswer>,
): Promise<void> {
  const html = { 'content-type': 'text/html' };
  switch (fault) {
    case 'garble':
      await forward();
      response.writeHead(200, { 'content-type': 'application/json' }).end('{"state":"iss');
      return;
    case 'throttle':
      response.writeHead(429, { ...html, 'retry-after': '1' }).end('<h1>slow down</h1>');
      return;
    case 'throttle_after':
      await forward();
      response.writeHead(429, { ...html, 'retry-after': '1' }).end('<h1>slow down</h1>');
      return;
    case 'unavailable':
      response.writeHead(503, { ...html, 'retry-after': '1' }).end('<h1>back soon</h1>');
      return;
    case 'gateway_timeout':
      await forward();
      response.writeHead(504, html).end('<h1>gateway time-out</h1>');
      return;
    case 'redirect':
      response.writeHead(307, { location: 'http://127.0.0.1:9/elsewhere' }).end();
      return;
    default:
      throw new Error(`not a fault of this kind: ${fault}`);
  }
}

function deliver(response: ServerResponse, { status, headers, body }: WholeAnswer): void {
  const { connection, 'transfer-encoding': _framing, ...kept } = headers;
  response.writeHead(status, { ...kept, 'content-length': body.byteLength }).end(body);
}

async function truncate(response: ServerResponse, answer: WholeAnswer, socket: Socket): Promise<void> {
  response.writeHead(answer.status, {
    'content-type': 'application/json',
    'content-length': answer.body.byteLength,
  });
  const half = answer.body.subarray(0, answer.body.byteLength / 2);
  await new Promise<void>((resolve) => response.write(half, () => resolve()));
  socket.end();
}

async function bodyOf(message: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of message) chunks.push(Buffer.from(chunk));
  return Buffer.concat(chunks);
}

function closed(socket: Socket): Promise<void> {
  if (socket.closed) return Promise.resolve();
  return new Promise((resolve) => {
    socket.once('close', () => resolve());
    // Half closed, as by a client that gave up, is closed for our purposes.
    socket.once('end', () => socket.destroy());
  });
}

async function forwardTo(upstreamUrl: string, request: IncomingMessage, body: Buffer): Promise<WholeAnswer> {
  const { host: _host, connection: _connection, ...headers } = request.headers;
  const { method } = request;
  const message = httpRequest(new URL(request.url ?? '/', upstreamUrl), {
    agent: false,
    headers,
    ...(method === undefined ? {} : { method }),
  });
  message.end(body);
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    message.once('response', resolve);
    message.once('error', reject);
  });
  return { status: answer.statusCode ?? 0, headers: answer.headers, body: await bodyOf(answer) };
}
