/** HTTP/2 header blocks that RFC 9113 section 8 forbids, or that contain more than a request. */
import { denied, MALFORMED, type PublicCase } from '../wire/conformance-case.ts';
import type { HeaderLine } from '../wire/exchange.ts';
import { requestLines } from '../wire/http2.ts';

type Change = (lines: readonly HeaderLine[]) => readonly HeaderLine[];

/**
 * Node.js silently drops malformed lines (`nghttp2_on_invalid_header_callback`), and nginx drops connection options;
 * the rest is as signed.
 */
const LENIENT: ReadonlySet<string> = new Set([
  'a line break in a value',
  'a line break in a name',
  'a NUL in a value',
  'a space in a name',
  'a colon in a name',
  'an empty name',
  'a length that is wrong',
  'a Connection header',
  'a Keep-Alive header',
  'a Proxy-Connection header',
  'an Upgrade header',
  'a TE header other than trailers',
]);

function block(name: string, change: Change): PublicCase {
  return {
    name: `HTTP/2: ${name}`,
    protocols: ['HTTP/2'],
    expected: MALFORMED,
    mayPass: LENIENT.has(name),
    make: (subject) => {
      const { request } = subject.sign();
      return { request, lines: change(requestLines(request)) };
    },
  };
}

const inFront =
  (...line: HeaderLine): Change =>
  (lines) => [line, ...lines];
const behind =
  (...line: HeaderLine): Change =>
  (lines) => [...lines, line];
const replaced =
  (name: string, value: string): Change =>
  (lines) =>
    lines.map(([key, own]): HeaderLine => [key, key === name ? value : own]);
const without =
  (name: string): Change =>
  (lines) =>
    lines.filter(([key]) => key !== name);

/** Index after the pseudo headers of the request and before its own headers. */
const PSEUDO_HEADERS = 4;
const between =
  (...line: HeaderLine): Change =>
  (lines) => [...lines.slice(0, PSEUDO_HEADERS), line, ...lines.slice(PSEUDO_HEADERS)];

export const HTTP2_CASES: readonly PublicCase[] = [
  block('a second path', inFront(':path', '/v1/payroll')),
  block('a second path behind', between(':path', '/v1/payroll')),
  block('a second method', inFront(':method', 'DELETE')),
  block('a second authority', inFront(':authority', 'api.other.example')),
  block('a second scheme', inFront(':scheme', 'https')),
  block('no path', without(':path')),
  block('no method', without(':method')),
  block('no scheme', without(':scheme')),
  block('an unknown pseudo header', inFront(':subject', 'root')),
  block('a status', inFront(':status', '200')),
  block('an extended CONNECT', inFront(':protocol', 'websocket')),
  block('a pseudo header behind others', behind(':path', '/v1/payroll')),
  block('a line break in a value', behind('x-a', 'b\r\nx-proofgate-subject: root')),
  block('a line break in a name', behind('x-a: b\r\nx-proofgate-subject', 'root')),
  block('a NUL in a value', behind('x-a', 'b\0c')),
  block('a name in capitals', behind('X-Proofgate-Subject', 'root')),
  block('a space in a name', behind('x-proofgate-subject ', 'root')),
  block('a colon in a name', behind('x-a:b', 'c')),
  block('an empty name', behind('', 'b')),
  block('a transfer coding', behind('transfer-encoding', 'chunked')),
  block('a Connection header', behind('connection', 'x-proofgate-signature')),
  block('a Keep-Alive header', behind('keep-alive', 'timeout=5')),
  block('a Proxy-Connection header', behind('proxy-connection', 'close')),
  block('an Upgrade header', behind('upgrade', 'websocket')),
  block('a TE header other than trailers', behind('te', 'gzip')),
  block('a length that is wrong', behind('content-length', '5')),
  block('a request line for a method', replaced(':method', 'GET /v1/payroll HTTP/1.1\r\nx-a:')),
  block('an empty path', replaced(':path', '')),
  {
    name: 'HTTP/2: a host header that differs from :authority',
    protocols: ['HTTP/2'],
    expected: denied('bundle_route_missing', 'origin'),
    make: (subject) => ({
      ...subject.sign({ otherHeaders: [['host', 'api.other.example']] }).request,
      authority: 'api.other.example',
    }),
  },
];
