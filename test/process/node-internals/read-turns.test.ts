/** Clients that send tiny chunks take a bounded part of each turn of the event loop. */
import { createServer, type IncomingMessage } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { afterEach, expect, it } from '@jest/globals';
import { readInTurns } from '../../../src/process/node-internals/read-turns.ts';
import { joinSmallChunks } from '../../../src/process/node-internals/small-chunks.ts';
import { chunkedHead } from '../../support/harness/chunk-floods.ts';
import { waitFor } from '../../support/wait.ts';

const ends: (() => unknown)[] = [];
afterEach(() => {
  for (const end of ends.splice(0)) end();
});

const CLIENTS = 20;
const CHUNKS = 10_000;
const HEAD = chunkedHead('POST', '/', [['Host', 'a']]);
/** Fits into one read of libuv. */
const BODY = Buffer.from('1\r\na\r\n'.repeat(CHUNKS));
const END = Buffer.from('0\r\n\r\n');

async function opened(take: (request: IncomingMessage) => void): Promise<readonly Socket[]> {
  const server = createServer((request, response) => {
    joinSmallChunks(request);
    take(request);
    request.once('end', () => response.end());
  });
  let accepted = 0;
  server.on('connection', (socket) => {
    readInTurns(socket);
    accepted += 1;
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const sockets = Array.from({ length: CLIENTS }, () => connect(port, '127.0.0.1'));
  ends.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  // All of them are read in one turn then.
  await waitFor('all connections', () => accepted === CLIENTS);
  return sockets;
}

it('parses the chunks of few clients in one turn, and of all in the end', async () => {
  let chunks = 0;
  let ended = 0;
  const sockets = await opened((request) => {
    // Each chunk is a byte, also when several arrive as one.
    request.on('data', (bytes: Buffer) => {
      chunks += bytes.length;
    });
    request.once('end', () => {
      ended += 1;
    });
  });
  let before = 0;
  let mostOfTurn = 0;
  const count = () => {
    mostOfTurn = Math.max(mostOfTurn, chunks - before);
    before = chunks;
    if (ended < CLIENTS) setImmediate(count);
  };
  setImmediate(count);
  for (const socket of sockets) socket.write(Buffer.concat([HEAD, BODY, END]));
  await waitFor('all bodies', () => ended === CLIENTS);
  expect(chunks).toBe(CLIENTS * CHUNKS);
  // 200,000 without the limit; one read brings 10,000.
  expect(mostOfTurn).toBeLessThanOrEqual(2 * CHUNKS);
});

it('starts no connection again that Node.js has stopped for back-pressure', async () => {
  const requests: IncomingMessage[] = [];
  const sockets = await opened((request) => {
    requests.push(request);
  });
  for (const socket of sockets) socket.write(Buffer.concat([HEAD, BODY, BODY, BODY, BODY, END]));
  await waitFor('all requests', () => requests.length === CLIENTS);
  // Nothing reads them: each takes its high-water mark, and what one or two reads bring.
  for (let turn = 0; turn < 200; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  for (const { readableLength } of requests) expect(readableLength).toBeLessThan(3 * CHUNKS);
  let ended = 0;
  for (const request of requests) {
    request
      .once('end', () => {
        ended += 1;
      })
      .resume();
  }
  await waitFor('all bodies', () => ended === CLIENTS);
});

it('closes a connection that goes on with tiny chunks after its answer', async () => {
  const server = createServer((request, response) => {
    joinSmallChunks(request);
    response.writeHead(401).end();
  });
  server.on('connection', readInTurns);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  ends.push(
    () => socket.destroy(),
    () => server.close(),
  );
  let isClosed = false;
  socket.on('error', () => undefined).resume();
  socket.once('close', () => {
    isClosed = true;
  });
  socket.write(HEAD);
  const more = setInterval(() => socket.write(BODY.subarray(0, 6 * 500)), 10);
  ends.push(() => clearInterval(more));
  await waitFor('the end of the connection', () => isClosed);
});
