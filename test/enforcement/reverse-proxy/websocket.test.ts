/** WebSockets through the reverse proxy. */
import { createHash } from 'node:crypto';
import type { Server } from 'node:http';
import { connect, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { beforeAll, beforeEach, expect, it } from '@jest/globals';
import type { Snapshot } from '../../../src/bundle/compile/snapshot.ts';
import type { HeaderLine, WireAddress } from '../../../src/tools/conformance/wire/exchange.ts';
import { encodeHttp1 } from '../../../src/tools/conformance/wire/http1.ts';
import { useProxies, useUpstreams, withRoutes } from '../../support/points/proxy-fixture.ts';
import { ROUTES } from '../../support/site/routes.ts';
import { waitFor } from '../../support/wait.ts';

const proxies = useProxies();
const upstreamWith = useUpstreams();
let plain: Snapshot;

beforeAll(() => {
  plain = proxies.snapshot;
});
beforeEach(() => {
  proxies.snapshot = withRoutes(plain, (route) => ({ ...route, upgrade: 'websocket' }));
});

const KEY = 'dGhlIHNhbXBsZSBub25jZQ==';
const accept = (key: string) =>
  createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64');

const HANDSHAKE: readonly HeaderLine[] = [
  ['Connection', 'Upgrade'],
  ['Upgrade', 'websocket'],
  ['Sec-WebSocket-Key', KEY],
  ['Sec-WebSocket-Version', '13'],
];

const handshake = (headers: readonly HeaderLine[] = HANDSHAKE) =>
  encodeHttp1(proxies.sign({ route: ROUTES.readOrder, otherHeaders: headers }));

interface Answer {
  readonly lines?: readonly string[];
  readonly onOpen?: (socket: Duplex) => void;
}

/** An upstream that accepts the handshake and echoes. */
async function echoing({
  lines,
  onOpen,
}: Answer = {}): Promise<{ url: string; open: Set<Duplex>; server: Server }> {
  const open = new Set<Duplex>();
  const { url, server } = await upstreamWith((_request, response) => response.writeHead(426).end('no'));
  server.on('upgrade', (_request, socket) => {
    open.add(socket);
    socket.on('close', () => open.delete(socket)).on('error', () => undefined);
    const answer = lines ?? [
      'Connection: Upgrade',
      'Upgrade: websocket',
      `Sec-WebSocket-Accept: ${accept(KEY)}`,
    ];
    socket.write(`HTTP/1.1 101 Switching Protocols\r\n${answer.join('\r\n')}\r\n\r\n`);
    onOpen?.(socket);
    socket.pipe(socket);
  });
  return { url, open, server };
}

function open(
  address: WireAddress,
  bytes: Buffer,
): { socket: Socket; text: () => string; isClosed: () => boolean } {
  const socket = connect(address).on('error', () => undefined);
  let text = '';
  let closed = false;
  socket.on('data', (chunk) => {
    text += chunk.toString('latin1');
  });
  socket.on('close', () => {
    closed = true;
  });
  socket.write(bytes);
  return { socket, text: () => text, isClosed: () => closed };
}

it('removes from a 101 what only a denial may contain', async () => {
  const lines = ['Connection: Upgrade', 'Upgrade: websocket', `Sec-WebSocket-Accept: ${accept(KEY)}`];
  const upstream = await echoing({ lines: [...lines, 'X-Proofgate-Reason: jti_replay', 'X-Own: kept'] });
  const { address } = await proxies.open(upstream.url);
  const client = open(address, handshake());
  await waitFor('the handshake', () => client.text().includes('\r\n\r\n'));
  expect(client.text()).toContain('X-Own: kept');
  expect(client.text().toLowerCase()).not.toContain('x-proofgate-reason');
  client.socket.destroy();
});

it('passes bytes in both directions after a matching 101, also those right behind the handshake', async () => {
  const upstream = await echoing();
  const { address, metric } = await proxies.open(upstream.url);
  const client = open(address, Buffer.concat([handshake(), Buffer.from('early')]));
  await waitFor('the echo', () => client.text().endsWith('early'));
  expect(client.text()).toMatch(/^HTTP\/1\.1 101 [\s\S]*sec-websocket-accept/i);
  client.socket.write('more');
  await waitFor('the echo', () => client.text().endsWith('earlymore'));
  expect(await metric('proofgate_proxy_websockets')).toBe(1);
  client.socket.destroy();
  await waitFor('its end at the upstream', () => upstream.open.size === 0);
  await waitFor(
    'no request in flight',
    async () => (await metric('proofgate_proxy_requests_in_flight')) === 0,
  );
});

it('the last bytes of the upstream reach the client', async () => {
  const upstream = await echoing({ onOpen: (socket) => socket.end('goodbye') });
  const { address } = await proxies.open(upstream.url);
  const client = open(address, handshake());
  await waitFor('the end', client.isClosed);
  expect(client.text()).toMatch(/goodbye$/);
});

it('closes when the key is revoked', async () => {
  const upstream = await echoing();
  const { address } = await proxies.open(upstream.url);
  const client = open(address, handshake());
  await waitFor('the handshake', () => client.text().includes(' 101 '));
  const { keys } = proxies.snapshot;
  const revoked = { size: keys.size, get: () => undefined };
  proxies.snapshot = { ...proxies.snapshot, keys: revoked };
  await waitFor('the end', () => client.isClosed() && upstream.open.size === 0);
});

it.each([
  ['another Sec-WebSocket-Accept', ['Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Accept: x']],
  ['another protocol', ['Connection: Upgrade', 'Upgrade: chat', `Sec-WebSocket-Accept: ${accept(KEY)}`]],
])('a 101 with %s is 502', async (_name, lines) => {
  const upstream = await echoing({ lines });
  const { address } = await proxies.open(upstream.url);
  const client = open(address, handshake());
  await waitFor('the end', client.isClosed);
  expect(client.text()).toMatch(/^HTTP\/1\.1 502 /);
  expect(client.text()).toContain('upstream_response_invalid');
});

it('passes on that the upstream does not switch', async () => {
  const upstream = await upstreamWith((_request, response) => response.writeHead(403).end('no'));
  const { address } = await proxies.open(upstream.url);
  const client = open(address, handshake());
  await waitFor('the end', client.isClosed);
  expect(client.text()).toMatch(/^HTTP\/1\.1 403 [\s\S]*no\r\n/);
});

it('denies a replayed handshake', async () => {
  const upstream = await echoing();
  const { address } = await proxies.open(upstream.url);
  const bytes = handshake();
  const first = open(address, bytes);
  await waitFor('the handshake', () => first.text().includes(' 101 '));
  const second = open(address, bytes);
  await waitFor('the end', second.isClosed);
  expect(second.text()).toMatch(/^HTTP\/1\.1 403 [\s\S]*jti_replay/);
  first.socket.destroy();
});

const without = (name: string) => HANDSHAKE.filter(([header]) => header !== name);

it.each<[string, readonly HeaderLine[]]>([
  ['two protocols', [...without('Upgrade'), ['Upgrade', 'websocket, h2c']]],
  ['two Upgrade lines', [...HANDSHAKE, ['Upgrade', 'websocket']]],
  ['no key', without('Sec-WebSocket-Key')],
  ['another version', [...without('Sec-WebSocket-Version'), ['Sec-WebSocket-Version', '8']]],
  ['a body', [...HANDSHAKE, ['Content-Length', '5']]],
  ['a chunked body', [...HANDSHAKE, ['Transfer-Encoding', 'chunked']]],
  ['Upgrade without Connection', without('Connection')],
])('refuses a handshake with %s, and consumes no proof', async (_name, headers) => {
  const upstream = await echoing();
  const { address, verified } = await proxies.open(upstream.url);
  const client = open(address, handshake(headers));
  await waitFor('the answer', () => client.text().includes('\r\n\r\n'));
  expect(client.text()).toMatch(/^HTTP\/1\.1 400 /);
  expect(verified.store.claims).toEqual([]);
  expect(upstream.open.size).toBe(0);
  client.socket.destroy();
});

it('refuses a handshake over HTTP/1.0, and consumes no proof', async () => {
  const upstream = await echoing();
  const { address, verified } = await proxies.open(upstream.url);
  const bytes = handshake().toString('latin1').replace(' HTTP/1.1', ' HTTP/1.0');
  const client = open(address, Buffer.from(bytes, 'latin1'));
  await waitFor('the end', client.isClosed);
  expect(client.text()).toMatch(/^HTTP\/1\.\d [45]/);
  expect(verified.store.claims).toEqual([]);
  expect(upstream.open.size).toBe(0);
});

it('refuses a handshake where the route does not allow it, and consumes no proof', async () => {
  proxies.snapshot = plain;
  const upstream = await echoing();
  const { address, verified } = await proxies.open(upstream.url);
  const client = open(address, handshake());
  await waitFor('the end', client.isClosed);
  expect(client.text()).toMatch(/^HTTP\/1\.1 400 [\s\S]*upgrade_refused/);
  expect(verified.store.claims).toEqual([]);
});

it('closes the connection for a handshake behind an unfinished response, and serves on', async () => {
  const upstream = await upstreamWith(() => undefined);
  const { address } = await proxies.open(upstream.url, { responseTimeoutMs: 1_000 });
  const first = encodeHttp1(proxies.sign({ route: ROUTES.readOrder }));
  const client = open(address, Buffer.concat([first, handshake()]));
  await waitFor('the end', client.isClosed);
  const after = open(address, Buffer.from('GET / HTTP/1.1\r\nHost: a\r\n\r\n'));
  await waitFor('an answer', () => after.text().includes(' 403 '));
  after.socket.destroy();
});
