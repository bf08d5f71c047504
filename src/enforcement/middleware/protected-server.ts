/**
 * Puts a guard in front of everything that a server emits for a request, before listeners of the application get it: `request`,
 * and the events that no framework's middleware sees, `checkContinue`, `checkExpectation`, `upgrade` and `connect`.
 * Source: Node.js documentation, `http.Server`.
 */
import { IncomingMessage, Server, ServerResponse, STATUS_CODES } from 'node:http';
import { Server as TlsServer } from 'node:https';
import { Duplex } from 'node:stream';
import { offersOnlyHttp2 } from '../../process/http-proxy/http2-offer.ts';
import { problemOfProxyFault } from '../../process/http-proxy/proxy-faults.ts';
import { followsIgnoredUpgrade, ignoreUpgradesOf } from '../../process/node-internals/ignored-upgrades.ts';
import { readInTurns } from '../../process/node-internals/read-turns.ts';
import { hasTooManyLines, KEPT_HEADER_LINES } from '../../protocol/header-line-limit.ts';
import { internalDenial, problemOfDenial } from '../answers/denial-problem.ts';
import { sendProblem } from '../http/problem-response.ts';
import type { HttpServer, ProblemResponse } from './admission-gate.ts';
import { endFailed } from './failed-handler.ts';
import type { Guard } from './guard.ts';

const GUARDS = new WeakMap<object, Guard>();
/** Connections whose parser keeps the number of header lines that a protected server requires. */
const CONNECTIONS = new WeakSet<object>();

export type ProtectFault = 'server_not_supported' | 'server_already_protected';

/** @returns why the server cannot be protected; undefined when it is */
export function protectServer(server: unknown, guard: Guard): ProtectFault | undefined {
  if (!isHttpServer(server)) return 'server_not_supported';
  const present = GUARDS.get(server);
  if (present !== undefined) return present === guard ? undefined : 'server_already_protected';
  GUARDS.set(server, guard);
  // Node.js reads this value for each new connection, so the application must not be able to change it later.
  Object.defineProperty(server, 'maxHeadersCount', {
    configurable: false,
    get: () => KEPT_HEADER_LINES,
    set: () => undefined,
  });
  ignoreUpgradesOf(server, offersOnlyHttp2);
  server.on(server instanceof TlsServer ? 'secureConnection' : 'connection', readInTurns);
  const emit = server.emit.bind(server);
  server.emit = (event: string, ...values: unknown[]): boolean => {
    const [request, second, head] = values;
    if (CONNECTED.has(event) && request instanceof Duplex) CONNECTIONS.add(request);
    if (!GUARDED.has(event) || !(request instanceof IncomingMessage)) {
      return emit(event, ...values);
    }
    if (followsIgnoredUpgrade(request)) {
      request.socket.destroy();
      return true;
    }
    if (second instanceof ServerResponse) return admitLater(guard, event, request, second, emit);
    if (second instanceof Duplex && event === 'upgrade') {
      admitUpgrade(guard, request, second)
        .then((isAllowed) => isAllowed && emit(event, request, second, head))
        .catch((error: unknown) => endFailed(error, second));
    } else if (second instanceof Duplex) second.destroy();
    return true;
  };
  // With a listener, Node leaves the interim response to it; it is never called.
  server.on('checkContinue', () => undefined);
  return undefined;
}

/** HTTP/2 servers and those of other runtimes have other messages. */
export function isHttpServer(server: unknown): server is HttpServer {
  return server instanceof Server || server instanceof TlsServer;
}

type Emit = (event: string, ...values: unknown[]) => boolean;

/** Captures the request and lets the application handle it like any other. */
function admitLater(
  guard: Guard,
  event: string,
  request: IncomingMessage,
  response: ServerResponse,
  emit: Emit,
): boolean {
  if (event === 'checkExpectation') {
    // As Node answers when the application has no listener (RFC 9110 section 10.1.1).
    response.writeHead(417).end();
    return true;
  }
  const fault = faultOf(request);
  if (fault !== undefined) {
    sendProblem(response, fault);
    return true;
  }
  const expectsContinue = event === 'checkContinue';
  guard.capture(request, { expectsContinue, response });
  if (expectsContinue) continueWhenRead(request, response);
  return emit('request', request, response);
}

/** Rejects a request that must not reach the application, because some of its header lines may be missing. */
function faultOf({ rawHeaders, socket }: IncomingMessage): ProblemResponse | undefined {
  if (hasTooManyLines(rawHeaders)) return TOO_MANY_LINES;
  return CONNECTIONS.has(socket) ? undefined : closing(problemOfDenial(internalDenial()));
}

const TOO_MANY_LINES = closing(problemOfProxyFault('headers_too_large'));

function closing(problem: ProblemResponse): ProblemResponse {
  return { ...problem, headers: [...problem.headers, ['connection', 'close']] };
}

const CONNECTED: ReadonlySet<string> = new Set(['connection', 'secureConnection']);

const GUARDED: ReadonlySet<string> = new Set([
  'request',
  'checkContinue',
  'checkExpectation',
  'upgrade',
  'connect',
]);

/** Sends `100 Continue` when the guard, or a handler of a route that is not verified, begins to read the body. */
function continueWhenRead(request: IncomingMessage, response: ServerResponse): void {
  const read = request._read;
  request._read = (size) => {
    request._read = read;
    if (!response.headersSent) response.writeContinue();
    read.call(request, size);
  };
}

/** The listener of an upgrade finds the `proof` on the request. */
async function admitUpgrade(guard: Guard, request: IncomingMessage, socket: Duplex): Promise<boolean> {
  // Node has removed its own listener, and without one an error ends the process.
  const ignore = () => undefined;
  socket.on('error', ignore);
  const fault = faultOf(request);
  if (fault !== undefined) {
    endWith(socket, fault);
    return false;
  }
  const admission = await guard.admitUpgrade(request);
  if (socket.destroyed) return false;
  if (admission.kind === 'refused') {
    endWith(socket, admission.problem);
    return false;
  }
  socket.off('error', ignore);
  endWhen(() => !admission.isStillValid(), socket);
  return true;
}

const LOOK_EVERY_MS = 1_000;

function endWhen(isOver: () => boolean, socket: Duplex): void {
  const timer = setInterval(() => isOver() && socket.destroy(), LOOK_EVERY_MS).unref();
  socket.once('close', () => clearInterval(timer));
}

function endWith(socket: Duplex, { body, headers, status }: ProblemResponse): void {
  const lines = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`,
    ...headers.filter(([name]) => name !== 'connection').map(([name, value]) => `${name}: ${value}`),
    'connection: close',
    `content-length: ${Buffer.byteLength(body)}`,
  ];
  socket.end(`${lines.join('\r\n')}\r\n\r\n${body}`, () => socket.destroy());
}
