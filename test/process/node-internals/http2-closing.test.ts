/** Tests a request behind a GOAWAY in the same read, and the end of connections. */
import { once } from 'node:events';
import { connect as connectHttp2, type Http2Server } from 'node:http2';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { afterEach, describe, expect, it } from '@jest/globals';
import type { ClientExchange } from '../../../src/process/http-proxy/client-exchange.ts';
import { dispatchConnection } from '../../../src/process/http-proxy/connection-protocol.ts';
import { createHttp2Server, type Http2Sessions } from '../../../src/process/http-proxy/http2-server.ts';
import {
  encodeFrame,
  FLAG,
  type Frame,
  PREFACE,
  readFrames,
  TYPE,
} from '../../support/hostile/http2-frames.ts';
import { useExtAuthzServers } from '../../support/points/check-servers.ts';
import { waitFor } from '../../support/wait.ts';

const NOTHING = Buffer.alloc(0);
/** POST / http, with an authority of one letter (RFC 7541 appendix A). */
const POST = Buffer.from([0x83, 0x84, 0x86, 0x41, 1, 0x61]);
const request = (stream: number) =>
  encodeFrame({ type: TYPE.headers, flags: FLAG.endHeaders | FLAG.endStream, stream, payload: POST });
const settings = encodeFrame({ type: TYPE.settings, flags: 0, stream: 0, payload: NOTHING });
const goaway = encodeFrame({ type: TYPE.goaway, flags: 0, stream: 0, payload: Buffer.alloc(8) });

/** Longer than the test may take. */
const FOREVER_MS = 2_000_000_000;
const line = (name: string, value: string) =>
  Buffer.concat([Buffer.of(0, name.length), Buffer.from(name), Buffer.of(value.length), Buffer.from(value)]);
const CALL = Buffer.concat([
  Buffer.from([0x83, 0x86]),
  line(':path', '/envoy.service.auth.v3.Authorization/Check'),
  line(':authority', 'a'),
  line('content-type', 'application/grpc'),
  line('te', 'trailers'),
]);

const grpc = useExtAuthzServers(64 * 1024);
const listeners: Server[] = [];
const sockets: Socket[] = [];
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  for (const listener of listeners.splice(0)) await new Promise((closed) => listener.close(closed));
});

async function openProxy(handle: (exchange: ClientExchange) => void) {
  const sessions: Http2Sessions = createHttp2Server(handle);
  const server: Http2Server = sessions.server;
  const http2 = (socket: Socket) => server.emit('connection', socket);
  const listener = createServer((socket) => dispatchConnection(socket, { http1: () => undefined, http2 }));
  listener.listen(0, '127.0.0.1');
  listeners.push(listener);
  await once(listener, 'listening');
  return { sessions, address: `127.0.0.1:${(listener.address() as AddressInfo).port}` };
}

async function dial(address: string) {
  const [host = '', port] = address.split(':');
  const socket = connect(Number(port), host);
  sockets.push(socket);
  let bytes = NOTHING;
  let isClosed = false;
  socket.on('error', () => undefined);
  socket.on('close', () => {
    isClosed = true;
  });
  socket.on('data', (chunk) => {
    bytes = Buffer.concat([bytes, chunk]);
  });
  await once(socket, 'connect');
  const ofStream = (stream: number) => readFrames(bytes).frames.filter((frame) => frame.stream === stream);
  const framesUntil = (stream: number, isEnough: (frames: readonly Frame[]) => boolean) =>
    waitFor<readonly Frame[]>(`frames on stream ${stream}`, () => {
      const frames = ofStream(stream);
      return isEnough(frames) ? frames : undefined;
    });
  return {
    socket,
    isClosed: () => isClosed,
    framesUntil,
    answer: (stream: number) => framesUntil(stream, ({ length }) => length > 0),
  };
}

it('answers a request behind a GOAWAY in the first read, and closes then', async () => {
  const open: ClientExchange[] = [];
  const { address } = await openProxy((exchange) => open.push(exchange));
  const client = await dial(address);
  client.socket.write(Buffer.concat([PREFACE, settings, request(1), goaway, request(3)]));
  // Node.js alone refuses it, from within its parser.
  await waitFor('both requests', () => open[1]);
  for (const { response } of open) {
    response.begin(200, [], false);
    response.end([]);
  }
  for (const stream of [1, 3]) {
    expect((await client.answer(stream)).map(({ type }) => type)).toContain(TYPE.headers);
  }
  await waitFor('the connection to close', () => client.isClosed() || undefined);
});

it('breaks an answer off, whatever is written to it then', async () => {
  const open: ClientExchange[] = [];
  const { address } = await openProxy((exchange) => open.push(exchange));
  const client = await dial(address);
  client.socket.write(Buffer.concat([PREFACE, settings, request(1)]));
  const { response } = await waitFor('the request', () => open[0]);
  response.begin(200, [], false);
  response.destroy();
  response.end([]);
  const isReset = (frame: Frame) => frame.type === TYPE.reset;
  const frames = await client.framesUntil(1, (all) => all.some(isReset));
  expect(frames.filter(({ flags, type }) => type !== TYPE.reset && (flags & FLAG.endStream) !== 0)).toEqual(
    [],
  );
});

describe('ext_authz', () => {
  /** Its message does not come, so the server waits for it. */
  const waitingCall = encodeFrame({ type: TYPE.headers, flags: FLAG.endHeaders, stream: 1, payload: CALL });

  it('answers a request behind a GOAWAY', async () => {
    const client = await dial((await grpc.open()).address);
    client.socket.write(Buffer.concat([PREFACE, settings, waitingCall, goaway, request(3)]));
    expect((await client.answer(3)).map(({ type }) => type)).toContain(TYPE.headers);
  });

  it('that drains is told of the end of a connection that is leaving already', async () => {
    const server = await grpc.open();
    const client = await dial(server.address);
    client.socket.write(Buffer.concat([PREFACE, settings, waitingCall, goaway]));
    await client.answer(0);
    const drained = server.drain(FOREVER_MS);
    client.socket.destroy();
    await drained;
  });
});

it('closes a connection after its last stream', async () => {
  const open: ClientExchange[] = [];
  const { address, sessions } = await openProxy((exchange) => open.push(exchange));
  const [busy, idle] = [await dial(address), await dial(address)];
  for (const { socket } of [busy, idle]) socket.write(Buffer.concat([PREFACE, settings]));
  busy.socket.write(request(1));
  const exchange = await waitFor('the request', () => open[0]);
  await idle.answer(0);
  sessions.close();
  await waitFor('the idle connection to close', () => idle.isClosed() || undefined);
  expect(busy.isClosed()).toBe(false);
  exchange.response.begin(200, [], false);
  exchange.response.end([]);
  expect((await busy.answer(1)).map(({ type }) => type)).toContain(TYPE.headers);
  await waitFor('the other to close', () => busy.isClosed() || undefined);
});

it('answers each request that it takes up, while requests come and it closes', async () => {
  for (let round = 0; round < 50; round += 1) {
    let taken = 0;
    const { address, sessions } = await openProxy(({ response }) => {
      taken += 1;
      response.begin(200, [], false);
      response.end([]);
    });
    const client = connectHttp2(`http://${address}`);
    client.on('error', () => undefined);
    let answered = 0;
    const send = () => {
      if (client.closed || client.destroyed) return;
      const stream = client.request({ ':method': 'GET' });
      stream.on('error', () => undefined);
      stream.on('response', () => {
        answered += 1;
        send();
      });
      stream.resume();
    };
    for (let stream = 0; stream < 20; stream += 1) send();
    await waitFor('traffic', () => answered > 100 || undefined);
    sessions.close();
    await once(client, 'close');
    expect(answered).toBe(taken);
  }
});
