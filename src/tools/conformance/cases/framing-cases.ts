/** HTTP/1.1 messages whose length, lines or headers can be read in two ways; their head is signed correctly. */
import { MALFORMED, type PublicCase, type RawBytes } from '../wire/conformance-case.ts';
import type { HeaderLine, WireRequest } from '../wire/exchange.ts';
import { encodeHttp1 } from '../wire/http1.ts';
import { withHeader, withMoreHeaders } from '../wire/sign-wire-request.ts';

const ORDER = '{"item":1,"count":2}';
const BODY_BYTES = ORDER.length;

/** Messages without an end, at least for some servers. */
const CUT_OFF: ReadonlySet<string> = new Set([
  'a length above 2^64',
  'a chunk size above 2^64',
  'a body that ends early',
  'chunks that end early',
  'an end before the empty line',
  'bare carriage returns',
]);

/** Forms that existing parsers accept, as RFC 9112 sections 2.2, 3, 5.1, 5.2, 6.3 and 7.1.1 permit or against them. */
const LENIENT: ReadonlySet<string> = new Set([
  'a length beside a transfer coding',
  'a transfer coding beside a length of 0',
  'a folded transfer coding',
  'a chunk extension',
  'a folded line',
  'a bare carriage return in a value',
  'two spaces in the request line',
  'a tab in the request line',
  'a tab behind the method',
  'bare line feeds',
  'an empty line in front',
  'no white space behind colons',
]);

/** Statuses with which proxies answer when they cannot read the body to its end. */
const BROKEN_BODY: readonly number[] = [408, 499, 500, 502];

/** A signed body with these lines for its length, and these bytes after the head. */
function framed(name: string, lines: readonly string[], body: string): PublicCase {
  return {
    name: `framing: ${name}`,
    protocols: ['HTTP/1.1'],
    needs: 'write_route',
    expected: MALFORMED,
    rejections: BROKEN_BODY,
    mayPass: LENIENT.has(name),
    make: (subject) => {
      const { request } = subject.signWrite({ body: ORDER });
      const text = `${headOf(request)}${[...lines, '', ''].join('\r\n')}${body}`;
      return raw(name, text, request);
    },
  };
}

const raw = (name: string, text: string, request: WireRequest): RawBytes => ({
  bytes: Buffer.from(text, 'latin1'),
  isCutOff: CUT_OFF.has(name),
  request,
});

/** Request line and headers, without a length and without the empty line. */
function headOf({ method, target, authority, headers = [] }: WireRequest): string {
  const text = encodeHttp1({ method, target, authority, headers }).toString('latin1');
  return text.slice(0, -2);
}

const chunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`;
const CHUNKED = 'Transfer-Encoding: chunked';
const LENGTH = `Content-Length: ${BODY_BYTES}`;
const SMUGGLED = 'GET /v1/payroll HTTP/1.1\r\nHost: api.shop.example\r\n\r\n';

const FRAMING: readonly PublicCase[] = [
  framed('a length beside a transfer coding', [LENGTH, CHUNKED], `${chunk(ORDER)}0\r\n\r\n`),
  framed(
    'a transfer coding beside a length of 0',
    [CHUNKED, 'Content-Length: 0'],
    `${chunk(ORDER)}0\r\n\r\n`,
  ),
  framed('two different lengths', [LENGTH, 'Content-Length: 0'], ORDER),
  framed('two lengths on one line', [`Content-Length: ${BODY_BYTES}, 0`], ORDER),
  framed('a signed length', [`Content-Length: +${BODY_BYTES}`], ORDER),
  framed('a negative length', ['Content-Length: -1'], ORDER),
  framed('a length in hexadecimal', [`Content-Length: 0x${BODY_BYTES.toString(16)}`], ORDER),
  framed('a length that is no number', ['Content-Length: many'], ORDER),
  framed('a length above 2^64', ['Content-Length: 18446744073709551636'], ORDER),
  framed('an empty length', ['Content-Length:'], ORDER),
  framed('a length with white space within', ['Content-Length: 2 0'], ORDER),
  framed('a transfer coding that is none', ['Transfer-Encoding: xchunked'], `${chunk(ORDER)}0\r\n\r\n`),
  framed(
    'a transfer coding before chunked',
    ['Transfer-Encoding: identity, chunked'],
    `${chunk(ORDER)}0\r\n\r\n`,
  ),
  framed('chunked twice', ['Transfer-Encoding: chunked, chunked'], `${chunk(ORDER)}0\r\n\r\n`),
  framed('gzip behind chunked', ['Transfer-Encoding: chunked, gzip'], `${chunk(ORDER)}0\r\n\r\n`),
  framed('a folded transfer coding', ['Transfer-Encoding:\r\n chunked'], `${chunk(ORDER)}0\r\n\r\n`),
  // Extensions apply to one hop only (RFC 9112 section 7.1.1).
  framed('a chunk extension', [CHUNKED], `14;a=b\r\n${ORDER}\r\n0\r\n\r\n`),
  framed('a space before the colon of a length', [`Content-Length : ${BODY_BYTES}`], ORDER),
  framed('a chunk size that is no number', [CHUNKED], `zz\r\n${ORDER}\r\n0\r\n\r\n`),
  framed('a chunk size with a sign', [CHUNKED], `+14\r\n${ORDER}\r\n0\r\n\r\n`),
  framed('a chunk size with 0x', [CHUNKED], `0x14\r\n${ORDER}\r\n0\r\n\r\n`),
  framed('a chunk size above 2^64', [CHUNKED], `10000000000000014\r\n${ORDER}\r\n0\r\n\r\n`),
  framed('a chunk longer than its size', [CHUNKED], `5\r\n${ORDER}\r\n0\r\n\r\n`),
  framed('a chunk without its end', [CHUNKED], `14\r\n${ORDER}0\r\n\r\n`),
  framed('a body that ends early', [LENGTH], ORDER.slice(0, -1)),
  framed('chunks that end early', [CHUNKED], chunk(ORDER)),
];

/** The bytes of a signed GET, changed before its last empty line. */
function rawHead(name: string, change: (head: string) => string): PublicCase {
  return {
    name: `head: ${name}`,
    protocols: ['HTTP/1.1'],
    expected: MALFORMED,
    mayPass: LENIENT.has(name),
    make: (subject) => {
      const { request } = subject.sign();
      return raw(name, change(headOf(request)), request);
    },
  };
}

const withLine = (name: string, line: string) => rawHead(name, (head) => `${head}${line}\r\n\r\n`);

const HEADS: readonly PublicCase[] = [
  rawHead('an end before the empty line', (head) => head),
  withLine('a space before a colon', 'X-Proofgate-Subject : root'),
  withLine('a folded line', 'X-A: b\r\n X-Proofgate-Subject: root'),
  withLine('a folded name', 'X-Proofgate-\r\n Subject: root'),
  withLine('a bare carriage return in a value', 'X-A: b\rX-Proofgate-Subject: root'),
  withLine('a NUL in a name', 'X-Proofgate-Subject\0: root'),
  withLine('a NUL in a value', 'X-A: b\0c'),
  withLine('a letter that is not ASCII in a name', 'X-Proofgate-Subj\xe9ct: root'),
  withLine('an empty name', ': root'),
  withLine('a line without a colon', 'X-Proofgate-Subject'),
  // A parser that reads it as a folded line changes the proof, not a header of the application.
  rawHead(
    'a space at the start of a name',
    (head) => `${head.replace(/(x-proofgate-signature: .*\r\n)/, '$1 X-Proofgate-Subject: root\r\n')}\r\n`,
  ),
  rawHead('another version', (head) => `${head.replace('HTTP/1.1', 'HTTP/9.9')}\r\n`),
  rawHead('no version', (head) => `${head.replace(' HTTP/1.1', '')}\r\n`),
  rawHead('a word more in the request line', (head) => `${head.replace('HTTP/1.1', 'HTTP/1.1 x')}\r\n`),
  rawHead('two spaces in the request line', (head) => `${head.replace(' HTTP/1.1', '  HTTP/1.1')}\r\n`),
  rawHead('a tab in the request line', (head) => `${head.replace(' HTTP/1.1', '\tHTTP/1.1')}\r\n`),
  rawHead('bare line feeds', (head) => `${head.replaceAll('\r\n', '\n')}\n`),
  rawHead('bare carriage returns', (head) => `${head.replaceAll('\r\n', '\r')}\r`),
  rawHead('a tab behind the method', (head) => `${head.replace(' ', '\t ')}\r\n`),
  rawHead('an empty line in front', (head) => `\r\n${head}\r\n`),
  rawHead('no white space behind colons', (head) => `${head.replaceAll(/^([a-z-]+): /gim, '$1:')}\r\n`),
  rawHead('a space in front', (head) => ` ${head}\r\n`),
];

/** A trailer is not a header, because it arrives after the decision. */
function withoutCredential(name: string): PublicCase {
  return {
    name: `proof: ${name} in a trailer`,
    needs: 'write_route',
    expected: { kind: 'denied', reason: 'invalid_request_proof', detail: 'proof_missing' },
    make: (subject) => {
      const { request } = subject.signWrite({ body: ORDER });
      const line = request.headers?.find(([key]) => key === name);
      const trailers: readonly HeaderLine[] = line === undefined ? [] : [line];
      return { ...withHeader(request, name), trailers };
    },
  };
}

const OTHERS: readonly PublicCase[] = [
  withoutCredential('x-proofgate-transcript'),
  withoutCredential('x-proofgate-signature'),
  {
    name: 'framing: a second request in the body',
    protocols: ['HTTP/1.1'],
    needs: 'write_route',
    expected: { kind: 'denied', reason: 'request_binding_mismatch', detail: 'content-sha256' },
    make: (subject) => ({ ...subject.signWrite({ body: ORDER }).request, body: SMUGGLED, framing: 'length' }),
  },
  {
    name: 'framing: an upgrade to h2c without credentials',
    protocols: ['HTTP/1.1'],
    expected: { kind: 'denied', reason: 'invalid_request_proof', detail: 'authorization_missing' },
    make: (subject) =>
      withMoreHeaders(withHeader(subject.sign().request, subject.passportHeader), [
        ['Connection', 'Upgrade, HTTP2-Settings'],
        ['Upgrade', 'h2c'],
        ['HTTP2-Settings', 'AAMAAABkAAQAoAAAAAIAAAAA'],
      ]),
  },
];

export const FRAMING_CASES: readonly PublicCase[] = [...FRAMING, ...HEADS, ...OTHERS];
