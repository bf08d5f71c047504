/** A node:http2 server with every limit set, which gets its connections from the listener. */
import {
  createServer,
  type Http2Server,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
  type ServerOptions,
} from 'node:http2';
import { closeAfterParsing } from '../node-internals/http2-closing.ts';
import type { ClientExchange } from './client-exchange.ts';
import { KEEP_ALIVE_TIMEOUT_MS, MAX_HEADER_BYTES } from './http1-server.ts';
import { http2Exchange } from './http2-exchange.ts';
import { closeWhenSilent, destroyUnlessAlive } from './http2-liveness.ts';

const MAX_STREAMS_OF_CONNECTION = 128;
/**
 * Flow control of one connection: streams whose bodies wait for a slow upstream must not block the others. A stream's own
 * window is Node's default, 64 KiB.
 */
const CONNECTION_WINDOW_BYTES = 2_097_152;

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
  // More than `request-head.ts` allows, with the pseudo-headers. Node.js resets a stream that has more, and drops no line.
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
    closeAfterParsing(session);
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

/**
 * Counts from the last stream, not from the last byte, so that frames without a request do not keep the connection
 * open.
 */
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
