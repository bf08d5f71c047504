/**
 * Chunk lines that servers read differently: sizes, extensions, line ends (RFC 9112 section 7.1). Each is signed twice: for a
 * point that takes the chunk's data for the body, and for one that ends the body early.
 * Sources: CVE-2021-22960 and CVE-2025-53643 (extensions), CVE-2025-55315 (Kestrel), CVE-2025-4366, CVE-2025-22871 (Go, bare
 * LF), CVE-2024-22020 and the "funky chunks" series of 2025 (TERM.EXT, EXT.TERM, TERM.SPILL, SPILL.TERM).
 */
import { HIDDEN, type Http1Case, named } from '../../support/hostile/cases.ts';

/** What stands for the line of a chunk whose data are SIZE (hexadecimal) bytes. */
const SIZE_LINES = named({
  'upper-case digits': '00SIZE\r\n',
  'many leading zeros': '0000000000000000000000000000SIZE\r\n',
  'hexadecimal prefix': '0xSIZE\r\n',
  'capital hexadecimal prefix': '0XSIZE\r\n',
  'plus sign': '+SIZE\r\n',
  'minus sign': '-SIZE\r\n',
  'space before': ' SIZE\r\n',
  'tab before': '\tSIZE\r\n',
  'space behind': 'SIZE \r\n',
  'tab behind': 'SIZE\t\r\n',
  'vertical tab behind': 'SIZE\x0b\r\n',
  'NUL behind': 'SIZE\x00\r\n',
  'NUL before': '\x00SIZE\r\n',
  'byte 0xff behind': 'SIZE\xff\r\n',
  'letter behind': 'SIZEg\r\n',
  'underscore inside': 'SIZE_0\r\n',
  'decimal point': 'SIZE.0\r\n',
  'number behind a space': 'SIZE 0\r\n',
  quoted: '"SIZE"\r\n',
  'sixteen digits too large': 'f0000000000000SIZE\r\n',
  'wraps at 2^32': '1000000SIZE\r\n',
  'wraps at 2^64': '1000000000000000000SIZE\r\n',
  'empty line': '\r\n',
  'empty line before': '\r\nSIZE\r\n',
  'bare LF': 'SIZE\n',
  'bare CR': 'SIZE\r',
  'CR CR LF': 'SIZE\r\r\n',
  'LF CR': 'SIZE\n\r',
  'LF LF': 'SIZE\n\n',
  extension: 'SIZE;a\r\n',
  'extension with a value': 'SIZE;a=b\r\n',
  'extension with a quoted value': 'SIZE;a="b;c"\r\n',
  'extension with white space': 'SIZE ; a = b\r\n',
  'extension without a name': 'SIZE;\r\n',
  'extension with an empty value': 'SIZE;a=\r\n',
  'extension with an open quote': 'SIZE;a="b\r\n',
  'extension with an escaped quote': 'SIZE;a="\\"\r\n',
  'extension with a quoted CRLF': 'SIZE;a="\r\n"\r\n',
  'extension with a bare LF': 'SIZE;\n\r\n',
  'extension with a bare LF inside': 'SIZE;a\nb\r\n',
  'extension with a quoted LF': 'SIZE;a="\n"\r\n',
  'extension with a bare CR': 'SIZE;\r\r\n',
  'extension with a bare CR inside': 'SIZE;a\rb\r\n',
  'extension with CR X': 'SIZE;a\rX\r\n',
  'extension ended by LF': 'SIZE;a\n',
  'extension ended by CR': 'SIZE;a\r',
  'extension with a NUL': 'SIZE;a\x00b\r\n',
  'extension with byte 0xff': 'SIZE;a\xff\r\n',
  'extension that looks like a size': 'SIZE;0\r\n',
  'extension that looks like the end': 'SIZE;\n0\n\n\r\n',
  'extension of 20,000 bytes': `SIZE;${'a'.repeat(20_000)}\r\n`,
  'a thousand extensions': `SIZE${';a=b'.repeat(1000)}\r\n`,
  'comma for the semicolon': 'SIZE,a\r\n',
});

const HEAD =
  'POST /v1/orders HTTP/1.1\r\nHost: api.shop.example\r\n{proof}Transfer-Encoding: chunked\r\n\r\n';

const sizeCases = SIZE_LINES.flatMap(([name, line]): readonly Http1Case[] => [
  {
    name: `chunk line: ${name}`,
    family: 'chunks',
    success: 'the point reads the data of the chunk, the upstream serves them as a request',
    signs: [{ route: 'createOrder', body: HIDDEN }],
    writes: [`${HEAD}${line.replaceAll('SIZE', '{hex}')}{body}\r\n0\r\n\r\n`],
  },
  {
    name: `last chunk line: ${name}`,
    family: 'chunks',
    success: 'the point takes the line for the last, the upstream reads on, or the reverse',
    signs: [{ route: 'createOrder', body: 'order' }],
    writes: [`${HEAD}5\r\norder\r\n${line.replaceAll('SIZE', '0')}\r\n${HIDDEN}`],
  },
]);

/** Two readings of one body: ends of chunk lines inside extensions, and chunks that are longer than they say. */
const SPLITS = named({
  'TERM.EXT: an extension holds the chunks of the other reading': [
    '',
    '2;\nxx\r\n{hex.2}\r\n0\r\n\r\n{body.2}\r\n0\r\n\r\n',
  ],
  'EXT.TERM: the line ends inside an extension': ['', '{hex.2};\n{body.2}\r\n0\r\n\r\n'],
  'EXT.TERM with quotes': ['', '5;a="\nabcde\r\n{hex.2}";\r\n{body.2}\r\n0\r\n\r\n'],
  'TERM.SPILL: two bytes that are no CRLF behind the data': ['orderXX', '5\r\norderXX0\r\n\r\n{body.2}'],
  'SPILL.TERM: data longer than the size': ['order', '5\r\norder{hex.2}\r\n{body.2}\r\n0\r\n\r\n'],
  'LF alone behind the data': ['order', '5\r\norder\n0\r\n\r\n{body.2}'],
  'CR alone behind the data': ['order', '5\r\norder\r0\r\n\r\n{body.2}'],
  'nothing behind the data': ['order', '5\r\norder0\r\n\r\n{body.2}'],
  'LF CR behind the data': ['order', '5\r\norder\n\r0\r\n\r\n{body.2}'],
  'LF X behind the data': ['order', '5\r\norder\nX0\r\n\r\n{body.2}'],
  'CR X behind the data': ['order', '5\r\norder\rX0\r\n\r\n{body.2}'],
  'spaces behind the data': ['order', '5\r\norder  0\r\n\r\n{body.2}'],
  'data shorter than the size': ['order', '7\r\norder\r\n0\r\n\r\n{body.2}'],
  'bare LF after the last chunk': ['order', '5\r\norder\r\n0\n\n{body.2}'],
  'LF then CRLF after the last chunk': ['order', '5\r\norder\r\n0\n\r\n{body.2}'],
  'CRLF then LF after the last chunk': ['order', '5\r\norder\r\n0\r\n\n{body.2}'],
  'CRLF then CR after the last chunk': ['order', '5\r\norder\r\n0\r\n\r{body.2}'],
  'no end after the last chunk': ['order', '5\r\norder\r\n0\r\n{body.2}'],
  'a second last chunk': ['order', '5\r\norder\r\n0\r\n\r\n0\r\n\r\n{body.2}'],
  'zeros for the last chunk': ['order', '5\r\norder\r\n000\r\n\r\n{body.2}'],
  'a negative zero': ['order', '5\r\norder\r\n-0\r\n\r\n{body.2}'],
  'bare LF everywhere': ['order', '5\norder\n0\n\n{body.2}'],
  'one byte a chunk': ['order', '1\r\no\r\n1\r\nr\r\n1\r\nd\r\n1\r\ne\r\n1\r\nr\r\n0\r\n\r\n{body.2}'],
  'no chunk at all': ['', '{body.2}'],
  'empty chunks between': ['order', '0\r\n5\r\norder\r\n0\r\n\r\n{body.2}'],
});

const splitCases = SPLITS.flatMap(([name, [body = '', wire]]): readonly Http1Case[] =>
  ([body, HIDDEN] as const).map((signed, index) => ({
    name: `${name}; signed for reading ${index + 1}`,
    family: 'chunks',
    success: 'point and upstream end the body at different bytes',
    signs: [
      { route: 'createOrder', body: signed },
      { route: 'createOrder', body: HIDDEN },
    ],
    writes: [`${HEAD}${wire}`],
  })),
);

export const CHUNKS: readonly Http1Case[] = [...sizeCases, ...splitCases];
