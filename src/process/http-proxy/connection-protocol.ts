/** Detects a connection's protocol, by ALPN over TLS and by its first bytes without TLS. */
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { readInTurns } from '../node-internals/read-turns.ts';
import { HEADERS_TIMEOUT_MS } from './http1-server.ts';

/** Start of every HTTP/2 connection (RFC 9113 section 3.4). No HTTP/1.1 method has the first four bytes. */
const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');

export interface ProtocolServers {
  readonly http1: (connection: Socket) => void;
  readonly http2: (connection: Socket) => void;
}

export function dispatchConnection(connection: Socket, { http1, http2 }: ProtocolServers): void {
  if (connection instanceof TLSSocket) {
    if (connection.alpnProtocol === 'h2') http2(connection);
    else {
      readInTurns(connection);
      http1(connection);
    }
    return;
  }
  // A peer that leaves is not an error.
  connection.on('error', () => undefined);
  const leaveTurns = readInTurns(connection);
  const silent = setTimeout(() => connection.destroy(), HEADERS_TIMEOUT_MS);
  let seen = Buffer.alloc(0);
  const look = (chunk: Buffer) => {
    seen = Buffer.concat([seen, chunk]);
    const length = Math.min(seen.length, PREFACE.length);
    const isPreface = seen.subarray(0, length).equals(PREFACE.subarray(0, length));
    if (isPreface && length < PREFACE.length) return;
    clearTimeout(silent);
    connection.off('data', look);
    connection.pause();
    connection.unshift(seen);
    if (isPreface) {
      leaveTurns();
      // node:http2 reads what is buffered by itself.
      http2(connection);
      return;
    }
    http1(connection);
    connection.resume();
  };
  connection.on('data', look);
  connection.once('close', () => clearTimeout(silent));
}
