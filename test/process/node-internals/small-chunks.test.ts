/** Node's HTTP servers hand a body over chunk by chunk; while nothing reads it, small chunks become one. */
import { createServer, type IncomingMessage } from 'node:http';
import { createServer as createHttp2Server, type ServerHttp2Stream } from 'node:http2';
import { type AddressInfo, connect, type Server, type Socket } from 'node:net';
import type { Readable } from 'node:stream';
import { afterEach, expect, it, test } from '@jest/globals';
import { joinSmallChunks } from '../../../src/process/node-internals/small-chunks.ts';
import { chunkedHead, http2Chunks, http2Head } from '../../support/harness/chunk-floods.ts';
import { waitFor } from '../../support/wait.ts';

const ends: (() => unknown)[] = [];
afterEach(() => {
  for (const end of ends.splice(0)) end();
});

async function sent(server: Server, bytes: Buffer): Promise<Socket> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  socket.on('error', () => undefined).resume();
  ends.push(
    () => socket.destroy(),
    () => server.close(),
  );
  socket.write(bytes);
  return socket;
}

const COUNT = 5_000;
const LINES = [
  [':method', 'POST'],
  [':scheme', 'http'],
  [':authority', 'a'],
  [':path', '/'],
] as const;

/** The stream of a request whose body of one-byte chunks nothing reads. */
const POINTS: { readonly [name: string]: () => Promise<Readable> } = {
  'HTTP/1.1': async () => {
    let stream: IncomingMessage | undefined;
    const server = createServer((request) => {
      joinSmallChunks(request);
      stream = request;
    });
    const head = chunkedHead('POST', '/', [['Host', 'a']]);
    await sent(server, Buffer.concat([head, Buffer.from('1\r\na\r\n'.repeat(COUNT))]));
    return waitFor('the request', () => stream);
  },
  'HTTP/2': async () => {
    let stream: ServerHttp2Stream | undefined;
    const server = createHttp2Server();
    server.on('stream', (opened) => {
      joinSmallChunks(opened);
      stream = opened.on('error', () => undefined);
    });
    const frames = Array.from({ length: COUNT / 200 }, () => http2Chunks(1));
    await sent(server, Buffer.concat([http2Head(1, () => LINES), ...frames]));
    return waitFor('the request', () => stream);
  },
};

it.each(Object.keys(POINTS))('%s: 5,000 chunks of one byte are read as fewer than ten', async (name) => {
  const stream = await POINTS[name]?.();
  if (stream === undefined) throw new Error('no stream');
  let received = 0;
  let parts = 0;
  // Nothing reads until the queue is there.
  await waitFor('a chunk', () => stream.readableLength > 0);
  await new Promise((resolve) => setTimeout(resolve, 100));
  stream.on('data', (chunk: Buffer) => {
    received += chunk.length;
    parts += 1;
  });
  await waitFor('all of it', () => received === COUNT);
  expect(parts).toBeLessThan(10);
});

test.each(['data', 'readable', 'iterator'] as const)(
  'a body of chunks of many sizes arrives unchanged: %s',
  async (how) => {
    const parts: Buffer[] = [];
    let isOver = false;
    const server = createServer(async (request) => {
      joinSmallChunks(request);
      // A late reader meets joined chunks.
      await new Promise((resolve) => setTimeout(resolve, 20));
      if (how === 'data') request.on('data', (chunk: Buffer) => parts.push(chunk));
      if (how === 'readable') {
        request.on('readable', () => {
          for (let chunk = request.read(); chunk !== null; chunk = request.read()) parts.push(chunk);
        });
      }
      if (how === 'iterator') for await (const chunk of request) parts.push(chunk);
      if (how === 'iterator') isOver = true;
      else request.on('end', () => (isOver = true));
    });
    const sizes = Array.from(
      { length: 400 },
      (_, index) => 1 + ((index * 7_919) % (index % 9 === 0 ? 9_000 : 40)),
    );
    const chunks = sizes.map((size, index) => Buffer.alloc(size, String.fromCharCode(97 + (index % 26))));
    const socket = await sent(server, chunkedHead('POST', '/', [['Host', 'a']]));
    for (const chunk of chunks) {
      socket.write(
        Buffer.concat([Buffer.from(`${chunk.length.toString(16)}\r\n`), chunk, Buffer.from('\r\n')]),
      );
      if (chunk.length > 8_000) await new Promise((resolve) => setImmediate(resolve));
    }
    socket.write('0\r\n\r\n');
    await waitFor('the end', () => isOver);
    expect(Buffer.concat(parts).equals(Buffer.concat(chunks))).toBe(true);
  },
);

it('a reader of parts of one size gets each as soon as it is there', async () => {
  const parts: number[] = [];
  const server = createServer((request) => {
    joinSmallChunks(request);
    request.on('readable', () => {
      for (let part = request.read(1_000); part !== null; part = request.read(1_000)) parts.push(part.length);
    });
  });
  const socket = await sent(server, chunkedHead('POST', '/', [['Host', 'a']]));
  // Nothing ends the body, and each chunk arrives alone.
  const timer = setInterval(() => socket.write(`64\r\n${'a'.repeat(100)}\r\n`), 1);
  ends.push(() => clearInterval(timer));
  await waitFor('three parts', () => parts.length >= 3);
  expect(new Set(parts)).toEqual(new Set([1_000]));
});
