/** node:http2 without a socket of its own, with every limit set: the listener hands connections to it. */
import {
  createServer,
  type Http2Server,
  type Http2Session,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
  type ServerOptions,
} from 'node:http2';
import type { ClientExchange } from './client-exchange.ts';
import { KEEP_ALIVE_TIMEOUT_MS, MAX_HEADER_BYTES } from './http1-server.ts';
import { http2Exchange } from './http2-exchange.ts';

const MAX_STREAMS_OF_CONNECTION = 128;
/**
 * Flow control of one connection: streams whose bodies wait for a slow upstream must not block the others. A stream's own
 * window is Node's default, 64 KiB.
 */
const CONNECTION_WINDOW_BYTES = 2_097_152;

const PING_INTERVAL_MS = 30_000;
const PING_TIMEOUT_MS = 10_000;
const LAST_PING_TIMEOUT_MS = 3_000;

/** @types/node 20 does not declare the two limits on resets, which Node.js has since 20.19. */
interface LimitedServerOptions extends ServerOptions {
  readonly streamResetBurst: number;
  readonly streamResetRate: number;
}

const OPTIONS: LimitedServerOptions = {
  settings: {
    enablePush: false,
    maxConcurrentStreams: MAX_STREAMS_OF_CONNECTION,
    maxHeaderListSize: MAX_HEADER_BYTES,
    enableConnectProtocol: false,
  },
  // One more than `request-head.ts` allows, with the pseudo-headers.
  maxHeaderListPairs: 128,
  // Megabytes; also ends CONTINUATION floods (CVE-2024-27983, CVE-2024-28182).
  maxSessionMemory: 10,
  maxSettings: 32,
  maxSessionInvalidFrames: 100,
  maxSessionRejectedStreams: 100,
  // Rapid reset (CVE-2023-44487).
  streamResetBurst: 1_000,
  streamResetRate: 33,
};

export interface Http2Sessions {
  readonly server: Http2Server;
  /** Announces the end of all connections; each closes when its last stream has ended. */
  close(): void;
  destroy(): void;
}

export function createHttp2Server(handle: (exchange: ClientExchange) => void): Http2Sessions {
  const server = createServer(OPTIONS);
  const sessions = new Set<ServerHttp2Session>();
  server.on('session', (session: ServerHttp2Session) => {
    sessions.add(session);
    session.once('close', () => sessions.delete(session));
    // A client that misbehaves or leaves is not an error.
    session.on('error', () => undefined);
    session.setLocalWindowSize(CONNECTION_WINDOW_BYTES);
    closeWhenIdle(session);
    closeWhenSilent(session);
  });
  server.on('sessionError', () => undefined);
  server.on(
    'stream',
    (stream: ServerHttp2Stream, headers: IncomingHttpHeaders, _flags: number, rawHeaders: string[]) =>
      handle(http2Exchange(stream, headers, rawHeaders)),
  );
  return {
    server,
    close: () => {
      for (const session of sessions) {
        destroyUnlessAlive(session, LAST_PING_TIMEOUT_MS);
        session.close();
      }
    },
    destroy: () => {
      for (const session of sessions) session.destroy();
    },
  };
}

/** Counts from the last stream, not from the last byte, so that frames without a request keep nothing open. */
function closeWhenIdle(session: ServerHttp2Session): void {
  let streams = 0;
  const idle = setTimeout(() => {
    if (streams === 0) session.close();
  }, KEEP_ALIVE_TIMEOUT_MS);
  session.on('stream', (stream: ServerHttp2Stream) => {
    streams += 1;
    stream.once('close', () => {
      streams -= 1;
      if (streams === 0) idle.refresh();
    });
  });
  session.once('close', () => clearTimeout(idle));
  idle.unref();
}

/**
 * After a connection error (RFC 9113 section 5.4.1) Node.js 20 reads nothing more and reports nothing: it never sees that
 * the peer has left, and neither the connection nor its streams end. Such a session sends no PING and gets no answer.
 */
export function closeWhenSilent(session: Http2Session): void {
  const timer = setInterval(() => {
    // Node.js sends no PING on a connection that closes after its last stream.
    if (!session.closed) destroyUnlessAlive(session, PING_TIMEOUT_MS);
  }, PING_INTERVAL_MS);
  session.once('close', () => clearInterval(timer));
  timer.unref();
}

function destroyUnlessAlive(session: Http2Session, timeoutMs: number): void {
  if (session.destroyed) return;
  const timer = setTimeout(() => session.destroy(), timeoutMs);
  timer.unref();
  const isSent = session.ping((error) => {
    // On an error the session is being destroyed.
    if (error === null) clearTimeout(timer);
  });
  if (!isSent) session.destroy();
}
