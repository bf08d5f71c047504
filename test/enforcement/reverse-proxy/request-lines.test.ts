/** What the upstream learns about the peer, and what a client cannot make it believe. */
import { expect, it } from '@jest/globals';
import {
  linesForUpstream,
  verifiableHeadersOf,
} from '../../../src/enforcement/reverse-proxy/request-lines.ts';

const FACTS = {
  protocolVersion: '1.1',
  scheme: 'https',
  peerAddress: '192.0.2.7',
  host: 'api.shop.example',
  verifiedAuthority: 'api.shop.example',
} as const;
const OWN = [
  ['host', 'api.shop.example'],
  ['via', '1.1 proofgate'],
  ['x-forwarded-proto', 'https'],
  ['x-forwarded-host', 'api.shop.example'],
  ['x-forwarded-for', '192.0.2.7'],
];

it.each([
  ...['Host', 'X-Forwarded-For', 'x_forwarded_for', 'X-Forwarded-Proto', 'X-Forwarded-Anything', 'Forwarded'],
  ...[
    'X-Real-IP',
    'x.real.ip',
    'Connection',
    'Keep-Alive',
    'Proxy-Authorization',
    'Proxy-Connection',
    'Upgrade',
  ],
  ...[
    'Trailer',
    'Transfer-Encoding',
    'transfer_encoding',
    'Content-Length',
    'content_length',
    'Expect',
    'TE',
  ],
  'HTTP2-Settings',
])('replaces %s', (name) => {
  expect(linesForUpstream([[name, 'evil']], FACTS)).toEqual(OWN);
});

it('keeps what is end to end, in order, spelling and repetition', () => {
  const lines = [
    ['Accept', 'a'],
    ['X-B', '1'],
    ['x-b', '2'],
  ] as const;
  expect(linesForUpstream(lines, FACTS).slice(1, 4)).toEqual(lines);
});

it('joins the cookies that HTTP/2 has split', () => {
  const lines = linesForUpstream(
    [
      ['cookie', 'a=1'],
      ['x-b', '2'],
      ['cookie', 'c=3'],
    ],
    FACTS,
  );
  expect(lines).toContainEqual(['cookie', 'a=1; c=3']);
  expect(lines.filter(([name]) => name === 'cookie')).toHaveLength(1);
});

it('names an IPv4 peer of a listener for both families as IPv4, and none on a Unix socket', () => {
  const forwarded = (peerAddress: string | undefined) =>
    linesForUpstream([], { ...FACTS, peerAddress }).find(([name]) => name === 'x-forwarded-for')?.[1];
  expect(forwarded('::ffff:192.0.2.7')).toBe('192.0.2.7');
  expect(forwarded('2001:db8::7')).toBe('2001:db8::7');
  expect(forwarded(undefined)).toBeUndefined();
});

it.each([
  ['x-forwarded-for', 'ambiguous'],
  ['via', 'ambiguous'],
  ['te', 'ambiguous'],
  ['x-tenant', 'single'],
])('a client cannot sign %s: %s', (name, kind) => {
  expect(verifiableHeadersOf([name, 'v'], 'api.shop.example').lookup(name).kind).toBe(kind);
});

it('a client can sign Host only as the upstream gets it', () => {
  const lookup = (host: string) =>
    verifiableHeadersOf(['Host', host], 'api.shop.example').lookup('host').kind;
  expect([lookup('api.shop.example'), lookup('API.shop.example')]).toEqual(['single', 'ambiguous']);
});
