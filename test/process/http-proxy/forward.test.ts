/** How a response of the upstream reaches the client, where the clients of one process affect each other. */
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import type { ClientResponse } from '../../../src/process/http-proxy/client-exchange.ts';
import { ExchangeRunner } from '../../../src/process/http-proxy/exchange-runner.ts';
import { forward } from '../../../src/process/http-proxy/forward.ts';
import { openUpstreamPool, type UpstreamPool } from '../../../src/process/http-proxy/upstream-pool.ts';

let server: Server;
let pool: UpstreamPool;
beforeEach(async () => {
  // The second half of `/long` comes when the client of `/short` has its answer.
  let finishLong = () => undefined as unknown;
  server = createServer((request, response) => {
    if (request.url === '/short') {
      response.end('short', () => finishLong());
      return;
    }
    response.write('long');
    finishLong = () => response.end('end');
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  pool = openUpstreamPool({
    address: { kind: 'origin', origin: new URL(`http://127.0.0.1:${port}`) },
    tls: undefined,
    maxConnections: 2,
    responseTimeoutMs: 60_000,
    idleTimeoutMs: 60_000,
    onConnect: () => undefined,
  });
});
afterEach(async () => {
  await pool.destroy();
  server.close();
});

/** A client that stays, and takes everything. */
const CLIENT: ClientResponse = {
  isGone: () => false,
  onGone: () => undefined,
  onClosed: (listener) => listener(),
  hasBegun: () => false,
  sendContinue: () => undefined,
  begin: () => undefined,
  write: () => true,
  onceDrained: () => undefined,
  end: () => undefined,
  destroy: () => undefined,
};

const get = (target: string, response: Partial<ClientResponse>) =>
  forward({
    pool,
    request: { method: 'GET', target, headers: ['host', 'a'], body: undefined, lengthBytes: undefined },
    response: { ...CLIENT, ...response },
    acceptsTrailers: false,
    withheld: new Set(),
    queueTimeoutMs: 60_000,
    idleTimeoutMs: 60_000,
  });

it('goes on reading for a client that a write for another client has drained', async () => {
  const received: string[] = [];
  let drained = () => undefined as unknown;
  const isFull = new Promise<void>((resolve) => {
    drained = resolve;
  });
  const long = get('/long', {
    write: (chunk) => received.push(Buffer.from(chunk).toString()) !== 1,
    onceDrained: (listener) => {
      drained();
      drained = listener;
    },
  });
  await isFull;
  const short = await get('/short', { begin: () => void drained() });
  expect([short, await long, received]).toEqual([
    { kind: 'completed', status: 200 },
    { kind: 'completed', status: 200 },
    ['long', 'end'],
  ]);
});

it.each([
  [101, '1xx'],
  [204, '2xx'],
  [599, '5xx'],
  [600, '5xx'],
  [999, '5xx'],
  [0, '5xx'],
] as const)('counts an answer with status %i as %s', async (status, expected) => {
  const served: string[] = [];
  const runner = new ExchangeRunner({
    maxRequests: 1,
    idleTimeoutMs: 60_000,
    metrics: { refused: () => undefined, requests: () => undefined, served: (one) => served.push(one) },
    onInternalError: () => undefined,
    serve: async () => status,
  });
  const request = {} as never;
  await runner.run({ request, response: CLIENT });
  expect(served).toEqual([expected]);
});
