/** Tests that HTTP/2 connections end after a connection error, which Node.js does not report. */
import { connect, type Socket } from 'node:net';
import { expect, it } from '@jest/globals';
import type { WireAddress } from '../../../src/tools/conformance/wire/exchange.ts';
import { encodeFrame, PREFACE, TYPE } from '../../support/hostile/http2-frames.ts';
import { useProxies } from '../../support/points/proxy-fixture.ts';
import { waitFor } from '../../support/wait.ts';

const proxies = useProxies();
const IN_FLIGHT = 'proofgate_proxy_requests_in_flight';
const CONNECTIONS = 'proofgate_proxy_connections';

const headers = (stream: number, block: string) =>
  encodeFrame({ type: TYPE.headers, flags: 5, stream, payload: Buffer.from(block, 'hex') });
/** GET http://a/ without a proof, then an index that HPACK does not have (RFC 7541 section 6.1). */
const BYTES = Buffer.concat([
  PREFACE,
  encodeFrame({ type: TYPE.settings, flags: 0, stream: 0, payload: Buffer.alloc(0) }),
  headers(1, '828684410161'),
  headers(3, '80'),
]);

/** Resolves when the proxy has said that the connection is in error. */
async function breakConnection({ host, port }: WireAddress): Promise<Socket> {
  const socket = connect(port, host);
  socket.on('error', () => undefined);
  let received = Buffer.alloc(0);
  socket.on('data', (chunk: Buffer) => {
    received = Buffer.concat([received, chunk]);
  });
  socket.write(BYTES);
  await waitFor('GOAWAY', () => received.includes(Buffer.from([TYPE.goaway, 0, 0, 0, 0, 0])));
  return socket;
}

// The proxy asks each connection every 30 seconds whether it lives.
it('releases the connection and its requests while the proxy serves', async () => {
  const proxy = await proxies.open('http://127.0.0.1:1');
  for (let count = 0; count < 5; count += 1) (await breakConnection(proxy.address)).destroy();
  await waitFor('the connections to end', async () => {
    const open = [await proxy.metric(CONNECTIONS), await proxy.metric(IN_FLIGHT)];
    return open.every((count) => count === 0) || undefined;
  });
});

it('does not wait for such a connection when it drains', async () => {
  const proxy = await proxies.open('http://127.0.0.1:1');
  const broken = await breakConnection(proxy.address);
  expect(await proxy.metric(CONNECTIONS)).toBe(1);
  broken.destroy();
  // The time-out of the drain would outlast the test; that of the last PING does not.
  await proxy.server.drain(3_600_000);
  await waitFor('the end of the connection', async () => {
    return (await proxy.metric(CONNECTIONS)) === 0 || undefined;
  });
});
