/**
 * Prepares the HTTP/2 connections of a grpc-js server: a larger connection window, and a stream table without garbage.
 * Neither has a setting. Measured in docs/operate/performance.md, "A check": `make bench PARTS="latency envoy"`.
 * If grpc-js or Node stores these parts elsewhere, connections work without the change and
 * test/process/node-internals/http2-connections.test.ts fails.
 */
import type { ServerHttp2Session } from 'node:http2';
import { types } from 'node:util';
import { closeAfterParsing } from './http2-closing.ts';
import { StreamTable } from './http2-stream-table.ts';

/**
 * The initial flow-control window of a connection: enough for 1024 Checks of 4 KiB. The default is 65,535 bytes (RFC 9113
 * section 6.9.2), which about thirty Checks fill. Later Checks could then overtake a waiting one until its deadline.
 */
const CONNECTION_WINDOW_BYTES = 4 * 1024 * 1024;

/** Call it again after each new listener or injector: grpc-js creates an HTTP/2 server for each. */
export function prepareConnections(server: object): void {
  const http2Servers: unknown = Reflect.get(server, 'http2Servers');
  if (!(http2Servers instanceof Map)) return;
  for (const http2Server of http2Servers.keys()) {
    if (http2Server.listeners('session').includes(prepare)) continue;
    http2Server.on('session', prepare);
  }
}

function prepare(session: ServerHttp2Session): void {
  session.setLocalWindowSize(CONNECTION_WINDOW_BYTES);
  closeAfterParsing(session);
  const state = stateOf(session);
  // Node uses its own subclass of Map, so `instanceof Map` is false.
  if (state !== undefined && types.isMap(state.streams) && state.streams.size === 0) {
    state.streams = new StreamTable();
  }
}

/** Node keeps the state of a session under a symbol that it does not export. */
function stateOf(session: object): { streams?: unknown } | undefined {
  const symbol = Object.getOwnPropertySymbols(session).find(({ description }) => description === 'state');
  const state: unknown = symbol && Reflect.get(session, symbol);
  return typeof state === 'object' && state !== null ? state : undefined;
}
