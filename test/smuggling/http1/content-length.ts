/**
 * `Content-Length` in values and spellings that servers read as different numbers (RFC 9112 sections 6.2 and 6.3).
 * Sources: CVE-2018-7159 (spaces) and CVE-2024-27982 (folding) of Node, CVE-2021-31922 (comma), CVE-2023-25690, PortSwigger
 * "Browser-powered desync attacks" (CL.0, 2022) and "HTTP/1.1 must die" (0.CL, 2025).
 */
import { HIDDEN, type Http1Case, named } from '../../support/hostile/cases.ts';

/** Header lines in which N stands for the length of the body. */
const SPELLINGS = named({
  'plus sign': 'Content-Length: +N\r\n',
  'minus sign': 'Content-Length: -N\r\n',
  'plus before a space': 'Content-Length: + N\r\n',
  'space behind': 'Content-Length: N \r\n',
  'tab before': 'Content-Length:\tN\r\n',
  'vertical tab before': 'Content-Length: \x0bN\r\n',
  'form feed behind': 'Content-Length: N\x0c\r\n',
  'NUL before': 'Content-Length: \x00N\r\n',
  'NUL behind': 'Content-Length: N\x00\r\n',
  'CR before': 'Content-Length: \rN\r\n',
  'CR behind': 'Content-Length: N\r\r\n',
  'no-break space before': 'Content-Length: \xa0N\r\n',
  'leading zero': 'Content-Length: 0N\r\n',
  'many leading zeros': 'Content-Length: 0000000000000000000000000N\r\n',
  'hexadecimal prefix': 'Content-Length: 0xN\r\n',
  'hexadecimal zero': 'Content-Length: 0x0\r\n',
  octal: 'Content-Length: 0oN\r\n',
  'digit group with _': 'Content-Length: N_0\r\n',
  'digit group with a comma': 'Content-Length: N,000\r\n',
  'decimal point': 'Content-Length: N.0\r\n',
  exponent: 'Content-Length: Ne0\r\n',
  'letter behind': 'Content-Length: Nx\r\n',
  'letter before': 'Content-Length: xN\r\n',
  'space inside': 'Content-Length: N 0\r\n',
  'number behind a space': 'Content-Length: 0 N\r\n',
  'semicolon behind': 'Content-Length: N;\r\n',
  'parameter behind': 'Content-Length: N;a=0\r\n',
  quoted: 'Content-Length: "N"\r\n',
  empty: 'Content-Length:\r\n',
  'white space alone': 'Content-Length:   \r\n',
  'the word': 'Content-Length: N bytes\r\n',
  'Arabic digits': 'Content-Length: \xd9\xa3\r\n',
  'fullwidth digits': 'Content-Length: \xef\xbc\x99\r\n',
  'superscript digit': 'Content-Length: \xb2\r\n',
  '2^31 more': 'Content-Length: 2147483648\r\n',
  '2^32 more': 'Content-Length: 4294967296\r\n',
  '2^63 - 1': 'Content-Length: 9223372036854775807\r\n',
  '2^63': 'Content-Length: 9223372036854775808\r\n',
  '2^64': 'Content-Length: 18446744073709551616\r\n',
  '2^64 + 5': 'Content-Length: 18446744073709551621\r\n',
  'forty digits': 'Content-Length: 1111111111111111111111111111111111111111\r\n',
  'twice the same': 'Content-Length: N\r\nContent-Length: N\r\n',
  'zero behind': 'Content-Length: N\r\nContent-Length: 0\r\n',
  'zero before': 'Content-Length: 0\r\nContent-Length: N\r\n',
  'names of both cases': 'Content-Length: 0\r\ncontent-length: N\r\n',
  'an empty second': 'Content-Length: N\r\nContent-Length:\r\n',
  'an odd second': 'Content-Length: N\r\nContent-Length: x\r\n',
  'list of the same': 'Content-Length: N, N\r\n',
  'list with zero behind': 'Content-Length: N, 0\r\n',
  'list with zero before': 'Content-Length: 0, N\r\n',
  'list with an empty element': 'Content-Length: N,\r\n',
  'space before the colon': 'Content-Length : N\r\n',
  'tab before the colon': 'Content-Length\t: N\r\n',
  'vertical tab before the colon': 'Content-Length\x0b: N\r\n',
  'space before the name': ' Content-Length: N\r\n',
  'underscore for the dash': 'Content_Length: N\r\n',
  'underscore beside zero': 'Content_Length: N\r\nContent-Length: 0\r\n',
  'space beside zero': 'Content-Length : N\r\nContent-Length: 0\r\n',
  'NUL inside the name': 'Content\x00-Length: N\r\n',
  'folded value': 'Content-Length:\r\n N\r\n',
  'folded digits': 'Content-Length: N\r\n 0\r\n',
  'behind a folded header': 'X-Fold: a\r\n Content-Length: N\r\n',
  'behind a bare LF': 'X-Line: a\nContent-Length: N\r\n',
  'behind a bare CR': 'X-Line: a\rContent-Length: N\r\n',
  'behind CR CR LF': 'X-Line: a\r\r\nContent-Length: N\r\n',
  'behind a name without a colon': 'X-Line\r\nContent-Length: N\r\n',
  'behind an empty name': ': a\r\nContent-Length: N\r\n',
  'ended by a bare LF': 'Content-Length: N\n',
});

const HEAD = 'POST /v1/orders HTTP/1.1\r\nHost: api.shop.example\r\n{proof}';

export const CONTENT_LENGTH: readonly Http1Case[] = SPELLINGS.flatMap(
  ([name, text]): readonly Http1Case[] => {
    const lines = text.replaceAll('N', '{length}');
    return [
      {
        name: `CL.0: ${name}`,
        family: 'content-length',
        success: 'the point reads the length, the upstream none, and serves the body as a request',
        signs: [{ route: 'createOrder', body: HIDDEN }],
        writes: [`${HEAD}${lines}\r\n{body}`],
      },
      {
        name: `0.CL: ${name}`,
        family: 'content-length',
        success: 'the point reads no body, the upstream one, which takes the next request of the connection',
        signs: [
          { route: 'createOrder', body: '' },
          { route: 'createOrder', body: HIDDEN },
        ],
        writes: [`${HEAD}${lines.replaceAll('{length}', '{length.2}')}\r\n`],
      },
    ];
  },
);

/** A body of a method that commonly has none: a server that ignores it serves it as a request (CL.0). */
export const UNEXPECTED_BODIES: readonly Http1Case[] = (
  [
    ['readOrder', 'GET /v1/orders/4711'],
    ['cancelOrder', 'DELETE /v1/cancellations/4711'],
  ] as const
).flatMap(([route, line]): readonly Http1Case[] =>
  named({
    'a length': `Content-Length: {length.2}\r\n\r\n{body.2}`,
    chunks: 'Transfer-Encoding: chunked\r\n\r\n{hex.2}\r\n{body.2}\r\n0\r\n\r\n',
    'a length, and Connection: close': 'Connection: close\r\nContent-Length: {length.2}\r\n\r\n{body.2}',
    'no framing': '\r\n{body.2}',
    'a length of zero': 'Content-Length: 0\r\n\r\n{body.2}',
    'an empty chunk': 'Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n{body.2}',
    Expect: 'Expect: 100-continue\r\nContent-Length: {length.2}\r\n\r\n{body.2}',
    'a websocket upgrade':
      'Connection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: {length.2}\r\n\r\n{body.2}',
  }).map(([name, rest]) => ({
    name: `${line} with a body: ${name}`,
    family: 'content-length',
    success: 'a body that was not signed reaches the upstream, or is served as a request',
    signs: [{ route }, { route: 'createOrder', body: HIDDEN }],
    writes: [`${line} HTTP/1.1\r\nHost: api.shop.example\r\n{proof}${rest}`],
  })),
);
