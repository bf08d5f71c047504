/** Observed routes at the reverse proxy: bodies and WebSockets of callers that are not verified. */
import { createHash } from 'node:crypto';
import { connect } from 'node:net';
import { beforeEach, expect, it } from '@jest/globals';
import type { WireRequest } from '../../../src/tools/conformance/wire/exchange.ts';
import { encodeHttp1, http1Client } from '../../../src/tools/conformance/wire/http1.ts';
import { useProxies, useUpstreams, withRoutes } from '../../support/points/proxy-fixture.ts';
import { AUTHORITY } from '../../support/site/routes.ts';
import { AUTH_SITE } from '../../support/site/site.ts';
import { waitFor } from '../../support/wait.ts';

const proxies = useProxies();
const upstreamWith = useUpstreams();
let isObserved = true;

beforeEach(() => {
  isObserved = true;
  proxies.snapshot = withRoutes(proxies.snapshot, (route) => ({ ...route, upgrade: 'websocket' }));
  proxies.observations = { observes: () => isObserved, observesUnmatched: () => isObserved };
});

const unsigned = (changes: Partial<WireRequest>): WireRequest => ({
  method: 'GET',
  target: '/v1/orders/4711',
  authority: AUTHORITY,
  ...changes,
});

it.each([100, 300_000])('a body of %d bytes of an unverified caller arrives whole', async (size) => {
  let arrived = Buffer.alloc(0);
  const { url } = await upstreamWith((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      arrived = Buffer.concat(chunks);
      response.end();
    });
  });
  const { address, verified } = await proxies.open(url);
  const body = Buffer.alloc(size, 'abc');
  const sent = unsigned({ method: 'POST', target: '/v1/orders', body });
  expect((await http1Client(address).send(sent)).status).toBe(200);
  expect(arrived.equals(body)).toBe(true);
  expect(verified.events).toMatchObject([{ outcome: 'observed', detail: 'authorization_missing' }]);
  isObserved = false;
  expect((await http1Client(address).send(sent)).status).toBe(401);
});

it.each(['/v1/orders/4711', '/v2/reports'])(
  'a signature for the site does not arrive: %s',
  async (target) => {
    const arrived: (readonly string[])[] = [];
    const { url } = await upstreamWith(({ headers }, response) => {
      arrived.push([String(headers.signature), String(headers['signature-input'])]);
      response.end();
    });
    const { address } = await proxies.open(url);
    for (const tag of [`proofgate/${AUTH_SITE}`, 'cdn']) {
      const headers = [
        ['Signature-Input', `sig=("@method");tag="${tag}"`],
        ['Signature', 'sig=:AAAA:'],
      ] as const;
      expect((await http1Client(address).send(unsigned({ target, headers }))).status).toBe(200);
    }
    expect(arrived).toEqual([
      ['undefined', 'undefined'],
      ['sig=:AAAA:', 'sig=("@method");tag="cdn"'],
    ]);
  },
);

it.each(['/v1/orders/4711', '/v2/reports'])(
  'a DPoP proof and its token do not arrive where a route of the site takes such proofs: %s',
  async (target) => {
    const arrived: (readonly string[])[] = [];
    const { url } = await upstreamWith(({ headers }, response) => {
      arrived.push([String(headers.dpop), String(headers.authorization)]);
      response.end();
    });
    const { address } = await proxies.open(url);
    const headers = [
      ['DPoP', 'e30.e30.AA'],
      ['Authorization', 'DPoP abc'],
    ] as const;
    for (const acceptsDpop of [true, false]) {
      if (proxies.snapshot !== undefined) proxies.snapshot = { ...proxies.snapshot, acceptsDpop };
      expect((await http1Client(address).send(unsigned({ target, headers }))).status).toBe(200);
    }
    expect(arrived).toEqual([
      ['undefined', 'undefined'],
      ['e30.e30.AA', 'DPoP abc'],
    ]);
  },
);

const KEY = 'dGhlIHNhbXBsZSBub25jZQ==';
const HANDSHAKE = [
  ['Connection', 'Upgrade'],
  ['Upgrade', 'websocket'],
  ['Sec-WebSocket-Key', KEY],
  ['Sec-WebSocket-Version', '13'],
  ['X-Proofgate-Subject', 'client:admin'],
] as const;

it('an unverified handshake passes without identity, and its tunnel closes with the observation', async () => {
  const upstream = await upstreamWith((_request, response) => response.writeHead(426).end('no'));
  let names: readonly string[] = [];
  upstream.server.on('upgrade', (request, socket) => {
    names = Object.keys(request.headers);
    const accept = createHash('sha1').update(`${KEY}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64');
    const lines = ['Connection: Upgrade', 'Upgrade: websocket', `Sec-WebSocket-Accept: ${accept}`];
    socket.on('error', () => undefined);
    socket.write(`HTTP/1.1 101 Switching Protocols\r\n${lines.join('\r\n')}\r\n\r\n`);
  });
  const { address } = await proxies.open(upstream.url);
  const socket = connect(address).on('error', () => undefined);
  let text = '';
  let isClosed = false;
  socket.on('data', (chunk) => {
    text += chunk.toString('latin1');
  });
  socket.on('close', () => {
    isClosed = true;
  });
  socket.write(encodeHttp1(unsigned({ headers: HANDSHAKE })));
  await waitFor('the handshake', () => text.startsWith('HTTP/1.1 101'));
  expect(names.filter((name) => name.startsWith('x-proofgate')).sort()).toEqual([
    'x-proofgate-decision-id',
    'x-proofgate-observed',
  ]);
  isObserved = false;
  await waitFor('the end of the tunnel', () => isClosed);
});

it('an upgrade that no route matches is refused', async () => {
  const { url } = await upstreamWith((_request, response) => response.end());
  const { address } = await proxies.open(url);
  const sent = unsigned({ target: '/v2/stream', headers: HANDSHAKE });
  expect((await http1Client(address).send(sent)).status).toBe(400);
});
