/**
 * Tests that the client speaks only to Redis: it sends nothing to a server that greets otherwise or not at all, and
 * disconnects.
 */
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { afterEach, describe, expect, it } from '@jest/globals';
import { type GreetingOptions, greetingConnector } from '../../../src/verifier/redis/client.ts';

let servers: Server[] = [];
let sockets: Socket[] = [];
afterEach(async () => {
  for (const socket of sockets) socket.destroy();
  for (const server of servers) {
    server.close();
    await once(server, 'close');
  }
  servers = [];
  sockets = [];
});

/** Answers the greeting with each text, one after the other. */
async function serverThatSays(...texts: readonly string[]) {
  const heard: string[] = [];
  const server = createServer((socket) => {
    sockets.push(socket);
    socket.on('error', () => undefined);
    socket.setNoDelay(true);
    socket.on('data', async (bytes: Buffer) => {
      heard.push(bytes.toString());
      for (const text of texts) await new Promise((sent) => socket.write(text, sent));
    });
  });
  servers.push(server);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { heard, port: (server.address() as AddressInfo).port };
}

async function connect(port: number, more: Partial<GreetingOptions> = {}): Promise<Socket> {
  const Connector = greetingConnector({
    address: { host: '127.0.0.1', port },
    tls: false,
    login: { username: undefined, revealPassword: () => 'secret-of-redis' },
    databaseNumber: 0,
    commandTimeoutMs: 500,
    connectTimeoutMs: 5_000,
    disconnectTimeoutMs: 50,
    certificateAuthorities: undefined,
    ...more,
  });
  const socket = (await new Connector({}).connect(() => undefined)) as Socket;
  sockets.push(socket);
  return socket;
}

describe('a server is spoken to', () => {
  it.each([
    ['Redis', ['+PONG\r\n']],
    ['Redis, in pieces', ['+PO', 'NG', '\r\n']],
    ['Redis that wants a login first', ['-NOAUTH Authentication required.\r\n']],
    ['Redis that still loads', ['-LOADING Redis is loading the dataset in memory\r\n']],
  ])('that is %s', async (_, texts) => {
    const { heard, port } = await serverThatSays(...texts);
    const socket = await connect(port);
    expect([socket.destroyed, heard]).toEqual([false, ['PING\r\n']]);
  });
});

describe('a server is cut off, and gets no further command,', () => {
  it.each([
    ['that speaks HTTP', ['HTTP/1.1 400 Bad Request\r\n']],
    ['that says a line of its own', ['220 ready\n']],
    ['that says more than its greeting', ['+PONG\r\n+PONG\r\n']],
    ['that answers something else first', ['$4\r\nPONG\r\n']],
    ['that is not ready in a way that Redis never is', ['-ERR unknown\r\n']],
    ['that talks on without an end of line', Array.from({ length: 6 }, () => 'x'.repeat(100))],
  ])('%s', async (_, texts) => {
    const { heard, port } = await serverThatSays(...texts);
    const socket = await connect(port);
    expect([socket.destroyed, heard]).toEqual([true, ['PING\r\n']]);
  });

  it('that says nothing, when its time is up', async () => {
    const { heard, port } = await serverThatSays();
    const socket = await connect(port, { connectTimeoutMs: 50 });
    expect([socket.destroyed, heard]).toEqual([true, ['PING\r\n']]);
  });

  it('that talks for as long as is listened to, when its time is up', async () => {
    const { port } = await serverThatSays('x'.repeat(512));
    const socket = await connect(port, { connectTimeoutMs: 50 });
    expect(socket.destroyed).toBe(true);
  });
});

it('that is not there is a stream that has ended', async () => {
  const { port } = await serverThatSays();
  for (const server of servers.splice(0)) {
    server.close();
    await once(server, 'close');
  }
  const socket = await connect(port);
  expect(socket.destroyed).toBe(true);
});
