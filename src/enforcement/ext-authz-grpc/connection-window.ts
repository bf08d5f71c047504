/**
 * How many bytes of requests may be on their way over one connection. HTTP/2 begins with 65,535 (RFC 9113 section 6.9.2), which
 * some thirty Checks fill: those whose bytes then wait can be overtaken for as long as others come, until nobody waits for them any
 * more. grpc-js has a setting for its clients alone.
 */
import type { Server } from '@grpc/grpc-js';

/** As much as all streams of a connection may bring at first: 1024 Checks of 4 KiB. */
const CONNECTION_WINDOW_BYTES = 4 * 1024 * 1024;

/** Of every connection that the server gets, by whichever way that it has now. */
export function widenConnections(server: Server): void {
  // The library's own; a test tells when a version of it keeps them elsewhere.
  const http2Servers: unknown = Reflect.get(server, 'http2Servers');
  if (!(http2Servers instanceof Map)) return;
  for (const http2Server of http2Servers.keys()) {
    if (http2Server.listeners('session').includes(widen)) continue;
    http2Server.on('session', widen);
  }
}

function widen(session: { setLocalWindowSize(bytes: number): void }): void {
  session.setLocalWindowSize(CONNECTION_WINDOW_BYTES);
}
