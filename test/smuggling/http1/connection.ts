/**
 * `Connection` options that make a proxy drop a header after it was verified (RFC 9110 section 7.6.1), `Expect` (section
 * 10.1.1; PortSwigger 2025), upgrades (section 7.8) and h2c smuggling (Bishop Fox 2020).
 */
import { HIDDEN, type Http1Case, named, type SignedPlan } from '../../support/hostile/cases.ts';

const GET = 'GET /v1/orders/4711 HTTP/1.1\r\nHost: api.shop.example\r\n{proof}';
const POST = 'POST /v1/orders HTTP/1.1\r\nHost: api.shop.example\r\n{proof}';
const CREATE: readonly SignedPlan[] = [{ route: 'createOrder', body: HIDDEN }];

const OPTIONS = [
  'Host',
  'Content-Length',
  'Transfer-Encoding',
  'Authorization',
  'X-Proofgate-Transcript',
  'X-Proofgate-Signature',
  'X-Proofgate-Subject',
  'X-Proofgate-Decision-Id',
  'Content-Type',
  'Cookie',
  'Trailer',
  'Expect',
  'close, Content-Length',
  'keep-alive, Content-Length',
  'close, keep-alive',
  'keep-alive, close',
  'Connection',
  'TE, Content-Length',
  'Upgrade, HTTP2-Settings',
  'content_length',
  '"Content-Length"',
  'Content-Length;q=1',
  ',',
  'a\x00b',
  'close\r\nConnection: keep-alive',
  'keep-alive\r\nConnection: Content-Length',
  'x-forwarded-for',
  ':path',
  'close\x0b',
];

const options = OPTIONS.map(
  (value): Http1Case => ({
    name: `Connection: ${JSON.stringify(value)}`,
    family: 'connection',
    success: 'a header that was verified, or that frames the body, does not reach the upstream',
    signs: CREATE,
    writes: [`${POST}Connection: ${value}\r\nContent-Length: {length}\r\n\r\n{body}`],
  }),
);
const proxyOptions = OPTIONS.slice(0, 10).map(
  (value): Http1Case => ({
    name: `Proxy-Connection: ${JSON.stringify(value)}`,
    family: 'connection',
    success: 'a header that was verified, or that frames the body, does not reach the upstream',
    signs: CREATE,
    writes: [`${POST}Proxy-Connection: ${value}\r\nContent-Length: {length}\r\n\r\n{body}`],
  }),
);

const EXPECTATIONS = [
  '100-continue',
  ' 100-continue',
  '100-Continue',
  'y 100-continue',
  '100-continue, 100-continue',
  '100-continue\r\nExpect: 100-continue',
  '100-continue;q=1',
  '200-ok',
  'x',
  '',
  '\r\n 100-continue',
  '\x00100-continue',
];

const expectations = EXPECTATIONS.flatMap((value): readonly Http1Case[] => [
  {
    name: `Expect: ${JSON.stringify(value)}, body at once`,
    family: 'expect',
    success: 'the upstream answers before the body, and serves the body as a request',
    signs: CREATE,
    writes: [`${POST}Expect: ${value}\r\nContent-Length: {length}\r\n\r\n{body}`],
  },
  {
    name: `Expect: ${JSON.stringify(value)}, body later`,
    family: 'expect',
    success: 'the point loses count of interim answers, and the next caller receives this one',
    signs: CREATE,
    writes: [`${POST}Expect: ${value}\r\nTransfer-Encoding: chunked\r\n\r\n`, '{hex}\r\n{body}\r\n0\r\n\r\n'],
  },
  {
    name: `Expect: ${JSON.stringify(value)}, GET`,
    family: 'expect',
    success: 'the upstream waits for a body that the point never sends, and takes the next request for it',
    signs: [{ route: 'readOrder' }],
    writes: [`${GET}Expect: ${value}\r\n\r\n`],
  },
]);

const UPGRADES = named({
  websocket:
    'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n',
  'websocket of a wrong version':
    'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 777\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n',
  'websocket without a key': 'Connection: Upgrade\r\nUpgrade: websocket\r\n',
  'websocket without Connection':
    'Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n',
  'websocket in capitals': 'Connection: UPGRADE\r\nUpgrade: WebSocket\r\nSec-WebSocket-Version: 13\r\n',
  h2c: 'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n',
  'h2c without HTTP2-Settings': 'Connection: Upgrade\r\nUpgrade: h2c\r\n',
  'h2c without Connection': 'Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n',
  'h2c in a list':
    'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: websocket, h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n',
  'h2c with two HTTP2-Settings':
    'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMA\r\nHTTP2-Settings: AAMA\r\n',
  h2: 'Connection: Upgrade\r\nUpgrade: h2\r\n',
  TLS: 'Connection: Upgrade\r\nUpgrade: TLS/1.0\r\n',
  'HTTP/1.1': 'Connection: Upgrade\r\nUpgrade: HTTP/1.1\r\n',
  'connect-udp': 'Connection: Upgrade\r\nUpgrade: connect-udp\r\nCapsule-Protocol: ?1\r\n',
  unknown: 'Connection: Upgrade\r\nUpgrade: foo\r\n',
  empty: 'Connection: Upgrade\r\nUpgrade:\r\n',
  'two Upgrade lines': 'Connection: Upgrade\r\nUpgrade: websocket\r\nUpgrade: h2c\r\n',
});

/** The upstream switches protocols if it is asked to; what follows is then no request that anybody verified. */
const upgrades = UPGRADES.flatMap(([name, lines]): readonly Http1Case[] =>
  ['/v1/orders/4711?answer=101', '/v1/orders/4711'].map((target) => ({
    name: `upgrade: ${name}, ${target.includes('101') ? 'accepted' : 'refused'}`,
    family: 'upgrade',
    success: 'the point opens a tunnel to the upstream, and requests pass unverified',
    signs: [{ route: 'readOrder', target }],
    writes: [
      `GET ${target} HTTP/1.1\r\nHost: api.shop.example\r\n{proof}${lines}\r\n`,
      name.startsWith('h2c')
        ? `PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00${HIDDEN}`
        : HIDDEN,
    ],
  })),
);

const upgradesWithBody = UPGRADES.slice(0, 8).map(
  ([name, lines]): Http1Case => ({
    name: `upgrade with a body: ${name}`,
    family: 'upgrade',
    success: 'the upstream takes the body for the first bytes of the other protocol',
    signs: CREATE,
    writes: [`${POST}${lines}Content-Length: {length}\r\n\r\n{body}`],
  }),
);

export const CONNECTION: readonly Http1Case[] = [
  ...options,
  ...proxyOptions,
  ...expectations,
  ...upgrades,
  ...upgradesWithBody,
];
