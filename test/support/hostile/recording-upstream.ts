/**
 * An API that records every byte of each connection and answers each request that it reads with that request as JSON. A strict
 * one closes the connection at the first fault; a lenient one reads on as careless servers do.
 */
import { createServer, type Socket } from 'node:net';
import { type HeaderLine, headerValues } from '../../../src/tools/conformance/wire/exchange.ts';
import {
  LENIENT_READINGS,
  type ReadRequest,
  type Rules,
  readRequests,
  STRICT,
} from '../../smuggling/oracle/readings.ts';
import type { Echo, Upstream, UpstreamRequest } from '../harness/upstream.ts';

export interface RecordedConnection {
  /** All bytes that it received since it was last cleared. */
  bytes(): Buffer;
}

interface LiveConnection extends RecordedConnection {
  isOpen(): boolean;
  /** Forgets the requests that were answered. */
  clear(): void;
}

export interface RecordingUpstream extends Upstream {
  readonly connections: readonly RecordedConnection[];
}

export type Temper = 'strict' | 'lenient';

export async function startRecordingUpstream(temper: Temper): Promise<RecordingUpstream> {
  const connections: LiveConnection[] = [];
  const open = new Set<Socket>();
  const server = createServer((socket) => {
    open.add(socket);
    socket.on('close', () => open.delete(socket));
    connections.push(record(socket, temper));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  return {
    host: '127.0.0.1',
    port: typeof address === 'object' && address !== null ? address.port : 0,
    connections,
    get requests() {
      return connections.flatMap(requestsOf);
    },
    clear: () => {
      const live = connections.filter((connection) => connection.isOpen());
      connections.splice(0, connections.length, ...live);
      for (const connection of live) connection.clear();
    },
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of open) socket.destroy();
      }),
  };
}

/** As an upstream that keeps to the grammar reads them; those after a fault are not among them. */
function requestsOf(connection: RecordedConnection): readonly UpstreamRequest[] {
  return readRequests(connection.bytes(), STRICT).requests.map(asUpstreamRequest);
}

export function asUpstreamRequest(read: ReadRequest): UpstreamRequest {
  return {
    method: read.method,
    url: read.target,
    httpVersion: read.version.replace('HTTP/', ''),
    headers: read.headers,
    trailers: read.trailers,
    body: read.body,
  };
}

function record(socket: Socket, temper: Temper): LiveConnection {
  let bytes = Buffer.alloc(0);
  let readTo = 0;
  let hasContinued = false;
  let rules: Rules | undefined = STRICT;
  socket.setNoDelay(true);
  socket.on('error', () => socket.destroy());
  socket.on('data', (chunk: Buffer) => {
    bytes = Buffer.concat([bytes, chunk]);
    if (rules === undefined) return;
    let reading = readRequests(bytes, rules, readTo);
    if (reading.fault !== undefined) {
      rules = temper === 'strict' ? undefined : LENIENT_READINGS[0];
      if (rules !== undefined) reading = readRequests(bytes, rules, readTo);
    }
    for (const request of reading.requests) {
      if (!request.isComplete) {
        if (!hasContinued && expectsContinue(request)) socket.write('HTTP/1.1 100 Continue\r\n\r\n');
        hasContinued = true;
        break;
      }
      hasContinued = false;
      readTo = request.endOffset;
      socket.write(answerTo(request));
    }
    if (rules === undefined) {
      socket.end('HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n');
    }
  });
  return {
    bytes: () => bytes,
    isOpen: () => !socket.destroyed,
    clear: () => {
      // After a fault nothing more is read, or what is read was judged.
      bytes = rules === STRICT ? bytes.subarray(readTo) : Buffer.alloc(0);
      readTo = 0;
    },
  };
}

const expectsContinue = ({ headers }: ReadRequest) => headerValues(headers, 'expect').length > 0;

/** A target with `answer=101` is answered by switching to whatever protocol was asked for. */
function answerTo(request: ReadRequest): string {
  const [upgrade] = headerValues(request.headers, 'upgrade');
  if (upgrade !== undefined && request.target.includes('answer=101')) {
    return `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${upgrade}\r\n\r\n`;
  }
  const body = echoOf(request);
  const head = `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n`;
  return request.method === 'HEAD' ? head : head + body;
}

/** The recording upstream's form, so that all upstreams answer alike. */
function echoOf({ method, target, headers, trailers, body }: ReadRequest): string {
  const kept: readonly HeaderLine[] = headers;
  const echo: Echo = { method, url: target, headers: kept, trailers, bodyBase64: body.toString('base64') };
  return JSON.stringify(echo);
}
