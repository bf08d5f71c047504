/**
 * What grpc-js and Node leave as it is for every HTTP/2 connection, and has no setting: how much may be on its way over it, and
 * what its streams are kept in.
 */
import type { ServerHttp2Session } from 'node:http2';
import { types } from 'node:util';
import { StreamTable } from './http2-stream-table.ts';

/**
 * As much as all streams of a connection may bring at first: 1024 Checks of 4 KiB. HTTP/2 begins with 65,535 (RFC 9113 section
 * 6.9.2), which some thirty Checks fill: those whose bytes then wait can be overtaken for as long as others come, until nobody
 * waits for them any more. grpc-js has a setting for its clients alone.
 */
const CONNECTION_WINDOW_BYTES = 4 * 1024 * 1024;

/** Every connection that the server gets, by whichever way that it has now. */
export function prepareConnections(server: object): void {
  // The library's own; a test tells when a version of it keeps them elsewhere.
  const http2Servers: unknown = Reflect.get(server, 'http2Servers');
  if (!(http2Servers instanceof Map)) return;
  for (const http2Server of http2Servers.keys()) {
    if (http2Server.listeners('session').includes(prepare)) continue;
    http2Server.on('session', prepare);
  }
}

function prepare(session: ServerHttp2Session): void {
  session.setLocalWindowSize(CONNECTION_WINDOW_BYTES);
  const state = stateOf(session);
  // A Map of the library's own, which has no prototype that we know.
  if (state !== undefined && types.isMap(state.streams) && state.streams.size === 0) {
    state.streams = new StreamTable();
  }
}

/** What Node keeps of a session, which it shows nobody: here too a test tells when it is elsewhere. */
function stateOf(session: object): { streams?: unknown } | undefined {
  const symbol = Object.getOwnPropertySymbols(session).find(({ description }) => description === 'state');
  const state: unknown = symbol && Reflect.get(session, symbol);
  return typeof state === 'object' && state !== null ? state : undefined;
}
