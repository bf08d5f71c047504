/** Requests that offer h2c, through the reverse proxy and through the signer: answered over HTTP/1.1, and never a tunnel. */
import type { IncomingMessage } from 'node:http';
import { describe, expect, it } from '@jest/globals';
import {
  type HeaderLine,
  headerValues,
  type WireRequest,
} from '../../../src/tools/conformance/wire/exchange.ts';
import { encodeHttp1, http1Client, openSocket } from '../../../src/tools/conformance/wire/http1.ts';
import { useEgress } from '../../support/caller/egress-fixture.ts';
import { useProxies, useUpstreams, withRoutes } from '../../support/points/proxy-fixture.ts';
import { ROUTES } from '../../support/site/routes.ts';
import { withMoreHeaders } from '../../support/site/signed-request.ts';
import { waitFor } from '../../support/wait.ts';

const proxies = useProxies();
const upstreamWith = useUpstreams();
const egressTo = useEgress();

const OFFER: readonly HeaderLine[] = [
  ['Connection', 'Upgrade, HTTP2-Settings'],
  ['Upgrade', 'h2c'],
  ['HTTP2-Settings', 'AAMAAABkAAQAoAAAAAIAAAAA'],
];

/** An API that would accept every offer, and otherwise records what arrives. */
async function eager() {
  const arrived: { method: string; body: string; names: readonly string[] }[] = [];
  let offers = 0;
  const { server, url } = await upstreamWith(async (request, response) => {
    const body = Buffer.concat(await (request as IncomingMessage).toArray()).toString();
    arrived.push({ method: request.method ?? '', body, names: Object.keys(request.headers) });
    response.end('done');
  });
  server.on('upgrade', (_request, socket) => {
    offers += 1;
    socket.end('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n');
  });
  return { arrived, offers: () => offers, url };
}

const order = (framing?: 'open'): WireRequest => ({
  ...proxies.sign({ route: ROUTES.createOrder, body: 'one order' }),
  ...(framing && { framing }),
});

describe('at the reverse proxy', () => {
  it.each<[string, () => WireRequest, string]>([
    ['a GET', () => proxies.sign({ route: ROUTES.readOrder }), ''],
    ['a body with a length', () => order(), 'one order'],
    ['a body in chunks', () => order('open'), 'one order'],
  ])('%s reaches the API without the offer, verified', async (_what, make, body) => {
    proxies.snapshot = withRoutes(proxies.snapshot, (route) => ({ ...route, upgrade: 'websocket' }));
    const upstream = await eager();
    const { address } = await proxies.open(upstream.url);
    const answer = await http1Client(address).send(withMoreHeaders(make(), OFFER));
    expect([answer.status, headerValues(answer.headers, 'connection')]).toEqual([200, ['close']]);
    expect([upstream.offers(), upstream.arrived.map((one) => one.body)]).toEqual([0, [body]]);
    const [{ names } = { names: [] }] = upstream.arrived;
    expect(names.filter((name) => name === 'upgrade' || name === 'http2-settings')).toEqual([]);
  });

  it('another body than the signed one is denied', async () => {
    const upstream = await eager();
    const { address } = await proxies.open(upstream.url);
    const answer = await http1Client(address).send(withMoreHeaders({ ...order(), body: 'ONE order' }, OFFER));
    expect([answer.status, JSON.parse(answer.body.toString()).detail]).toEqual([403, 'content-sha256']);
    expect(upstream.arrived).toEqual([]);
  });

  it.each([
    ['HTTP/2', `PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00`],
    ['another request', 'GET /v1/hidden HTTP/1.1\r\nHost: api.shop.example\r\n\r\n'],
  ])('what follows as %s never reaches the API', async (_what, more) => {
    const upstream = await eager();
    const { address } = await proxies.open(upstream.url);
    const bytes = encodeHttp1(withMoreHeaders(proxies.sign({ route: ROUTES.readOrder }), OFFER));
    for (const isTogether of [true, false]) {
      const socket = openSocket(address).on('error', () => undefined);
      let text = '';
      let isClosed = false;
      socket.on('data', (chunk) => {
        text += chunk;
      });
      socket.on('close', () => {
        isClosed = true;
      });
      socket.write(isTogether ? Buffer.concat([bytes, Buffer.from(more, 'latin1')]) : bytes);
      if (!isTogether) {
        await waitFor('the answer', () => text !== '');
        socket.write(Buffer.from(more, 'latin1'));
      }
      await waitFor('the end', () => isClosed);
      expect(text).toMatch(/^HTTP\/1\.1 (?:200|403) /);
    }
    // The second time the proof is a replay.
    expect([upstream.offers(), upstream.arrived.length]).toEqual([0, 1]);
  });

  it.each<[string, readonly HeaderLine[]]>([
    [
      'h2c beside another protocol',
      [
        ['Connection', 'Upgrade'],
        ['Upgrade', 'websocket, h2c'],
      ],
    ],
    [
      'h2c twice',
      [
        ['Connection', 'Upgrade'],
        ['Upgrade', 'h2c'],
        ['Upgrade', 'h2c'],
      ],
    ],
    [
      'h2c and another line',
      [
        ['Connection', 'Upgrade'],
        ['Upgrade', 'h2c'],
        ['Upgrade', 'foo'],
      ],
    ],
    [
      'h2c with a coding that Node.js does not check',
      [
        ['Connection', 'Upgrade'],
        ['Upgrade', 'h2c'],
        ['Transfer-Encoding', 'identity'],
      ],
    ],
    [
      'another protocol',
      [
        ['Connection', 'Upgrade'],
        ['Upgrade', 'h2'],
      ],
    ],
  ])('%s is refused, and consumes no proof', async (_what, lines) => {
    const upstream = await eager();
    const { address, verified } = await proxies.open(upstream.url);
    const answer = await http1Client(address).send(
      withMoreHeaders(proxies.sign({ route: ROUTES.readOrder }), lines),
    );
    expect([answer.status, verified.store.claims, upstream.arrived]).toEqual([400, [], []]);
  });
});

it.each([undefined, 'one order'])('at the signer, it is signed and sent on: %s', async (body) => {
  const upstream = await eager();
  const verifying = await proxies.open(upstream.url);
  const egress = await egressTo(`http://127.0.0.1:${verifying.address.port}`, proxies.site);
  const answer = await http1Client(egress.address).send({
    method: body === undefined ? 'GET' : 'POST',
    authority: `${egress.address.host}:${egress.address.port}`,
    target: body === undefined ? '/v1/orders/4711' : '/v1/orders',
    headers: OFFER,
    ...(body !== undefined && { body }),
  } as WireRequest);
  expect([answer.status, upstream.offers(), upstream.arrived.map((one) => one.body)]).toEqual([
    200,
    0,
    [body ?? ''],
  ]);
});
