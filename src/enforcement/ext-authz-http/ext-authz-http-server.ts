/**
 * The forward-authentication server: decides for proxies that send authorization requests over HTTP/1.1, on TCP or a
 * Unix socket. Every request that it can read gets a decision. It has no other paths, because a proxy would treat any
 * 200 as an allow.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import {
  type ConnectionListener,
  openConnectionListener,
} from '../../process/connections/connection-listener.ts';
import type { ServerTls, TlsMaterial } from '../../process/connections/tls-material.ts';
import { discardRestOfBody } from '../../process/http-proxy/discard-rest-of-body.ts';
import { problemOfProxyFault } from '../../process/http-proxy/proxy-faults.ts';
import { readInTurns } from '../../process/node-internals/read-turns.ts';
import { joinSmallChunks } from '../../process/node-internals/small-chunks.ts';
import { withinMs } from '../../process/program/time-limit.ts';
import type { DecisionTracer } from '../../process/telemetry/decision-trace.ts';
import { hasTooManyLines, KEPT_HEADER_LINES } from '../../protocol/header-line-limit.ts';
import { deny } from '../../protocol/reasons.ts';
import type { Decision } from '../../verifier/decision/decide.ts';
import type { Verifier } from '../../verifier/verifier.ts';
import { internalDenial } from '../answers/denial-problem.ts';
import { httpCall } from '../http/http-call.ts';
import { answerOf, type CheckAnswer, denialAnswer } from './check-answer.ts';
import { CheckBodies } from './check-body.ts';
import { type CheckedRequest, type CheckReader, readCheck } from './checked-request.ts';
import { ConnectionRegister } from './connection-register.ts';
import type { ExtAuthzHttpMetrics } from './ext-authz-http-metrics.ts';
import type { TrustedPeers } from './trusted-peers.ts';

export interface ExtAuthzHttpOptions {
  readonly verifier: Pick<Verifier, 'check' | 'refuse' | 'awaitBody'>;
  readonly metrics: ExtAuthzHttpMetrics;
  readonly reader: CheckReader;
  /** `HOST:PORT` (port 0 picks a free one) or `unix:PATH`. */
  readonly listen: string;
  readonly tls: ServerTls | undefined;
  /** Undefined to trust every peer that can connect, because of the socket file or its certificate. */
  readonly trustedPeers: TrustedPeers | undefined;
  /** Maximum size of a forwarded body, bytes. A larger one is unknown. */
  readonly maxBodyBytes: number;
  readonly maxConnections: number;
  readonly tracer: DecisionTracer | undefined;
  /** Reports an internal error; the request has been denied. */
  readonly onInternalError: (error: unknown) => void;
}

export interface ExtAuthzHttpServer {
  /** Address it listens on: `HOST:PORT` with the actual port, or `unix:PATH`. */
  readonly address: string;
  /**
   * Uses the material for new handshakes. When the client CA changes, connections under the old one are closed within ten
   * seconds. @throws TlsMaterialError, and keeps the current material
   */
  setTlsMaterial(material: TlsMaterial): void;
  /** Stops accepting connections and waits until open requests are answered, at most for the given time. */
  drain(timeoutMs: number): Promise<void>;
}

/** More than any of the proxies accepts from its callers by default, so that their limit is the one that counts. */
const MAX_HEADER_BYTES = 256 * 1024;
/** Timeout of one authorization request, including its body. */
const REQUEST_TIMEOUT_MS = 30_000;
/** How long a proxy may keep an idle connection. Longer than proxies keep theirs, because a lost check is not retried. */
const KEEP_ALIVE_TIMEOUT_MS = 10 * 60_000;
const REPLACED_CA_DRAIN_MS = 10_000;

/** @throws ListenError */
export async function openExtAuthzHttpServer(options: ExtAuthzHttpOptions): Promise<ExtAuthzHttpServer> {
  const { listen, maxConnections, metrics, tls, trustedPeers } = options;
  const connections = new ConnectionRegister();
  const bodies = new CheckBodies(options.verifier, options.maxBodyBytes);
  const server = createHttpServer(metrics, (request, response) => {
    joinSmallChunks(request);
    return answerCheck({ ...options, connections, bodies }, request, response);
  });
  const listener = await openConnectionListener({
    listen,
    maxConnections,
    tls,
    protocols: ['http/1.1'],
    metrics,
    onConnection: (socket) => {
      if (trustedPeers !== undefined && !trustedPeers.includes(socket.remoteAddress)) {
        metrics.refused('peer');
        socket.destroy();
        return;
      }
      connections.add(socket);
      readInTurns(socket);
      server.emit('connection', socket);
    },
  });
  let clientCa = tls?.material.clientCa;
  return {
    address: listener.address,
    setTlsMaterial: (material) => {
      listener.setTlsMaterial(material);
      if (material.clientCa === clientCa) return;
      clientCa = material.clientCa;
      connections.retire(REPLACED_CA_DRAIN_MS);
    },
    drain: (timeoutMs) => drain({ server, listener, connections }, timeoutMs),
  };
}

function createHttpServer(
  metrics: ExtAuthzHttpMetrics,
  handle: (request: IncomingMessage, response: ServerResponse) => Promise<void>,
): Server {
  const server = createServer({
    maxHeaderSize: MAX_HEADER_BYTES,
    requestTimeout: REQUEST_TIMEOUT_MS,
    keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
    insecureHTTPParser: false,
  });
  // `answerCheck` rejects a request with this number of lines.
  server.maxHeadersCount = KEPT_HEADER_LINES;
  server.on('request', (request, response) => void handle(request, response));
  const reject = (socket: Socket) => {
    metrics.refused('request');
    // A peer that has disconnected needs no answer.
    if (socket.writable) socket.write(BAD_REQUEST);
    socket.destroySoon();
  };
  server.on('clientError', (_, socket) => reject(socket as Socket));
  server.on('connect', (_, socket) => reject(socket as Socket));
  // Starts the timer of the time-outs, as `listen` would.
  server.emit('listening');
  return server;
}

const BAD_REQUEST =
  'HTTP/1.1 400 Bad Request\r\nCache-Control: no-store\r\nConnection: close\r\nContent-Length: 0\r\n\r\n';

interface CheckParts extends ExtAuthzHttpOptions {
  readonly connections: ConnectionRegister;
  readonly bodies: CheckBodies;
}

/** Never rejects. */
async function answerCheck(
  parts: CheckParts,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { connections, metrics, onInternalError, reader } = parts;
  const ended = metrics.started();
  const close = connections.begin(request.socket);
  response.once('close', () => {
    ended(response.writableFinished ? response.statusCode : undefined);
    close();
  });
  // A gateway that still sends the body must get the answer: Traefik turns a closed connection into 500.
  discardRestOfBody(request, response);
  const isLast = () => connections.isRetired(request.socket);
  if (hasTooManyLines(request.rawHeaders)) {
    metrics.refused('request');
    send(response, problemOfProxyFault('headers_too_large'), isLast());
    return;
  }
  try {
    const { check, decision } = await decisionOn(parts, request);
    send(response, answerOf(decision, { profile: reader.profile, request: check.facts }), isLast());
  } catch (error) {
    onInternalError(error);
    if (response.headersSent) response.destroy();
    else send(response, denialAnswer(internalDenial(), reader.profile), isLast());
  }
}

async function decisionOn(
  parts: CheckParts,
  request: IncomingMessage,
): Promise<{ readonly check: CheckedRequest; readonly decision: Decision }> {
  const { bodies, reader } = parts;
  const { method = '', rawHeaders, url: target = '' } = request;
  const checkOf = (body: Buffer | undefined) => readCheck(reader, { method, target, rawHeaders, body });
  if (reader.bodyMode !== 'forwarded') {
    const check = checkOf(undefined);
    return { check, decision: await decide(parts, check, request) };
  }
  const body = await bodies.receive(request, () => checkOf(undefined));
  if (body.kind === 'decided') return { check: checkOf(undefined), decision: body.decision };
  try {
    const check = checkOf(body.bytes);
    return { check, decision: await decide(parts, check, request) };
  } finally {
    body.end();
  }
}

function decide(
  { metrics, tracer, verifier }: ExtAuthzHttpOptions,
  { facts, fault, reservedName }: CheckedRequest,
  request: IncomingMessage,
): Decision | Promise<Decision> {
  const call = httpCall(facts.headers, tracer, () => request.socket.destroyed);
  if (fault !== undefined) metrics.refused(fault);
  if (reservedName === undefined) return verifier.check(facts, call);
  metrics.refused('header');
  const name = reservedName.toLowerCase().slice(0, MAX_SHOWN_NAME_CHARACTERS);
  return verifier.refuse(facts, deny('request_binding_mismatch', `header.${name}`), call);
}

const MAX_SHOWN_NAME_CHARACTERS = 64;

function send(response: ServerResponse, { body, headers, status }: CheckAnswer, isLast: boolean): void {
  if (isLast) response.shouldKeepAlive = false;
  response.writeHead(status, [...headers.flat(), ...['content-length', String(Buffer.byteLength(body))]]);
  response.end(body);
}

interface DrainedParts {
  readonly server: Server;
  readonly listener: ConnectionListener;
  readonly connections: ConnectionRegister;
}

async function drain({ connections, listener, server }: DrainedParts, timeoutMs: number): Promise<void> {
  listener.stop();
  connections.retire(timeoutMs);
  await withinMs(timeoutMs, listener.closed, undefined);
  listener.destroy();
  await listener.closed;
  // Stops the timer. The server itself has never listened.
  server.close(() => undefined);
}
