/**
 * An impostor in the sidecar's place: it accepts connections on the sidecar's socket and sends invalid answers. Each kind is
 * named for its answer.
 */
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import {
  constants,
  createServer as createHttp2Server,
  type Http2Server,
  type ServerHttp2Stream,
} from 'node:http2';
import { createServer, type Server, type Socket } from 'node:net';
import type { FailedCheck } from '../../support/harness/failed-check.ts';

interface Rubbish {
  readonly name: string;
  /** The failure that callers see. Default `no_answer`. */
  readonly failure?: FailedCheck;
}

interface RawRubbish extends Rubbish {
  readonly kind: 'raw';
  readonly onConnection: (socket: Socket) => void;
}

interface StreamRubbish extends Rubbish {
  readonly kind: 'stream';
  readonly onStream: (stream: ServerHttp2Stream) => void;
}

export type ImpostorRubbish = RawRubbish | StreamRubbish;

/** RFC 9113 section 4.1: length, type, flags, stream. */
function frame(type: number, streamId: number, payload: Buffer, announcedBytes = payload.byteLength): Buffer {
  const header = Buffer.alloc(9);
  header.writeUIntBE(announcedBytes, 0, 3);
  header.writeUInt8(type, 3);
  header.writeUInt32BE(streamId, 5);
  return Buffer.concat([header, payload]);
}

const SETTINGS = frame(4, 0, Buffer.alloc(0));
/** Last stream 0, no error. */
const GOAWAY = frame(7, 0, Buffer.alloc(8));
const CUT_HEADERS = frame(1, 1, Buffer.alloc(10), 4000);

/** gRPC over HTTP2, "Length-Prefixed-Message". */
function grpcMessage(message: Buffer, announcedBytes = message.byteLength, compressed = 0): Buffer {
  const prefix = Buffer.alloc(5);
  prefix.writeUInt8(compressed, 0);
  prefix.writeUInt32BE(announcedBytes, 1);
  return Buffer.concat([prefix, message]);
}

const GRPC = { ':status': 200, 'content-type': 'application/grpc' };
/** CheckResponse { status { code: 0 } ok_response { } }: field 1 and field 3. */
const ALLOW = Buffer.of(0x0a, 2, 0x08, 0, 0x1a, 0);

/** Answers with a complete response: the given message and trailers. */
function answering(message: Buffer, trailers: Record<string, string> | undefined) {
  return (stream: ServerHttp2Stream) => {
    if (trailers === undefined) {
      stream.respond(GRPC);
      stream.end(message);
      return;
    }
    stream.on('wantTrailers', () => stream.sendTrailers(trailers));
    stream.respond(GRPC, { waitForTrailers: true });
    stream.end(message);
  };
}

function answeringPlain(status: number, contentType: string, body: string) {
  return (stream: ServerHttp2Stream) => {
    stream.respond({ ':status': status, 'content-type': contentType });
    stream.end(body);
  };
}

const raw = (name: string, onConnection: RawRubbish['onConnection']): RawRubbish => ({
  kind: 'raw',
  name,
  onConnection,
});
const stream = (name: string, onStream: StreamRubbish['onStream'], failure?: FailedCheck): StreamRubbish => ({
  kind: 'stream',
  name,
  onStream,
  ...(failure === undefined ? {} : { failure }),
});

const OK = { 'grpc-status': '0' };

export const RUBBISH: readonly ImpostorRubbish[] = [
  raw('nothing at all', () => undefined),
  raw('the end of the connection', (socket) => socket.destroy()),
  raw('bytes without meaning', (socket) => void socket.write(Buffer.alloc(4096, 0xa7))),
  raw('HTTP/1.1', (socket) => void socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok')),
  raw('GOAWAY', (socket) => void socket.write(Buffer.concat([SETTINGS, GOAWAY]))),
  raw('half a frame', (socket) => socket.end(Buffer.concat([SETTINGS, CUT_HEADERS]))),
  stream('RST_STREAM', (each) => each.close(constants.NGHTTP2_INTERNAL_ERROR)),
  stream('RST_STREAM without an error', (each) => each.close(constants.NGHTTP2_NO_ERROR)),
  stream('headers, and then nothing', (each) => each.respond(GRPC)),
  stream('an allow without grpc-status', answering(grpcMessage(ALLOW), undefined)),
  stream('an allow with an error', answering(grpcMessage(ALLOW), { 'grpc-status': '13' })),
  stream('an allow with a grpc-status that is none', answering(grpcMessage(ALLOW), { 'grpc-status': 'ok' })),
  stream('an allow that is cut', answering(grpcMessage(ALLOW.subarray(0, 3), 6), OK)),
  stream('half of an allow', answering(grpcMessage(ALLOW.subarray(0, 3)), OK)),
  stream('a compressed allow', answering(grpcMessage(ALLOW, 6, 1), OK)),
  stream('no message', answering(Buffer.alloc(0), OK)),
  stream('bytes that are no message', answering(grpcMessage(Buffer.alloc(64, 0xff)), OK)),
  stream('a page', answeringPlain(200, 'text/html', '<h1>It works</h1>')),
  stream('JSON', answeringPlain(200, 'application/json', '{"allowed":true}')),
  stream('404', answeringPlain(404, 'text/plain', 'no such service')),
  stream('502', answeringPlain(502, 'text/plain', 'bad gateway')),
  // Envoy takes each of these for an allow.
  stream('an empty message', answering(grpcMessage(Buffer.alloc(0)), OK), 'no_decision'),
  stream('an allow', answering(grpcMessage(ALLOW), OK), 'no_decision'),
  stream(
    'a message of another kind',
    answering(grpcMessage(Buffer.of(0x7a, 2, 0x68, 0x69)), OK),
    'no_decision',
  ),
];

export interface Impostor {
  stop(): Promise<void>;
}

/** @param path of the socket, whose owner must be gone */
export async function startImpostor(path: string, rubbish: ImpostorRubbish): Promise<Impostor> {
  rmSync(path, { force: true });
  const sockets = new Set<Socket>();
  const server = rubbish.kind === 'raw' ? createServer(rubbish.onConnection) : http2Server(rubbish);
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => sockets.delete(socket));
  });
  server.listen(path);
  await once(server, 'listening');
  return {
    stop: async () => {
      for (const socket of sockets) socket.destroy();
      if (!server.listening) return;
      server.close();
      await once(server, 'close');
    },
  };
}

function http2Server({ onStream }: StreamRubbish): Http2Server & Server {
  const server = createHttp2Server();
  server.on('stream', (each) => {
    each.on('error', () => undefined);
    onStream(each);
  });
  server.on('sessionError', () => undefined);
  return server;
}
