/** Tests that other TLS files leave the way in which a pool connects. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { afterEach, expect, it } from '@jest/globals';
import {
  openUpstreamPool,
  type UpstreamPool,
  type UpstreamTls,
} from '../../../src/process/http-proxy/upstream-pool.ts';

const server = createServer((_request, response) => response.end());
afterEach(() => void server.close());

const get = (pool: UpstreamPool) =>
  new Promise<number>((resolve, reject) =>
    pool.dispatch(
      { method: 'GET', target: '/', headers: ['host', 'a'], body: undefined, lengthBytes: undefined },
      {
        onRequestStart: () => undefined,
        onResponseStart: (_controller, status) => resolve(status),
        onResponseError: (_controller, error) => reject(error),
      },
    ),
  );

it('asks its own connector again, with the new files', async () => {
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  const connected: (UpstreamTls | undefined)[] = [];
  const pool = openUpstreamPool(
    {
      address: { kind: 'origin', origin: new URL(`http://127.0.0.1:${port}`) },
      tls: undefined,
      maxConnections: 1,
      responseTimeoutMs: 5_000,
      idleTimeoutMs: 5_000,
      onConnect: () => undefined,
    },
    ({ tls }) =>
      (_, callback) => {
        connected.push(tls);
        const socket = connect(port, '127.0.0.1', () => callback(null, socket));
      },
  );
  expect(await get(pool)).toBe(200);
  const tls = { ca: 'other', client: undefined, serverName: undefined };
  pool.setTls(tls);
  expect(await get(pool)).toBe(200);
  expect(connected).toEqual([undefined, tls]);
  await pool.destroy();
});
