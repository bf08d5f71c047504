/**
 * Lengths that differ from the DATA, transfer codings, connection-specific headers and trailers (RFC 9113 sections 8.1.1, 8.2.2
 * and 8.1). Source: PortSwigger "HTTP/2: The Sequel is Always Worse" (H2.CL, H2.TE), CVE-2021-33193, CVE-2021-36740.
 */
import { HIDDEN, type Http2Case, type LineText, named } from '../../support/hostile/cases.ts';
import { CREATE, hiddenCase, READ, readCase, SIGNS_READ } from './requests.ts';

const LENGTHS = [
  '0',
  '{length-1}',
  '{length+1}',
  '5',
  '+{length}',
  '-{length}',
  '0{length}',
  '0x{hex}',
  '{length}.0',
  '{length}e0',
  '{length}, {length}',
  '{length},0',
  '0,{length}',
  '{length} ',
  ' {length}',
  '{length}\t',
  '{length}x',
  '',
  '18446744073709551616',
  '9223372036854775808',
  '4294967296',
  '\xd9\xa3',
  '{length}\x00',
  '"{length}"',
];
const lengths = LENGTHS.flatMap((value): readonly Http2Case[] => {
  const about = (name: string) => ({
    name: `H2.CL ${JSON.stringify(value)}: ${name}`,
    family: 'length',
    success: 'the upstream reads the length, and serves what is behind it as a request',
  });
  const lines: readonly LineText[] = [...CREATE, ['content-length', value]];
  return [
    hiddenCase(about('with the body'), lines),
    { ...hiddenCase(about('without a body'), lines), frames: [{ kind: 'headers', lines, endStream: true }] },
    {
      ...about('of a GET, with the body'),
      signs: SIGNS_READ,
      frames: [
        {
          kind: 'headers',
          lines: [
            ...READ,
            ['content-length', value.replaceAll('+1}', '}1').replaceAll(/\{(?:length|hex)[^}]*\}/g, '10')],
          ],
        },
        { kind: 'data', text: HIDDEN, endStream: true },
      ],
    },
  ];
});

const twoLengths = (
  [
    ['{length}', '0'],
    ['0', '{length}'],
    ['{length}', '{length}'],
    ['{length}', ''],
  ] as const
).map(([first, second]) =>
  hiddenCase(
    {
      name: `H2.CL ${first} and ${JSON.stringify(second)}`,
      family: 'length',
      success: 'the upstream reads the other length, and serves the body',
    },
    [...CREATE, ['content-length', first], ['content-length', second]],
  ),
);

const CODINGS: readonly LineText[] = [
  ['transfer-encoding', 'chunked'],
  ['transfer-encoding', 'Chunked'],
  ['transfer-encoding', ' chunked'],
  ['transfer-encoding', 'chunked '],
  ['transfer-encoding', '\tchunked'],
  ['transfer-encoding', 'identity, chunked'],
  ['transfer-encoding', 'chunked, identity'],
  ['transfer-encoding', 'identity'],
  ['transfer-encoding', 'xchunked'],
  ['transfer-encoding', 'gzip, chunked'],
  ['transfer-encoding', ''],
  ['transfer-encoding', 'chunked\r\nx-a: b'],
  ['x-a', 'b\r\ntransfer-encoding: chunked'],
  ['te', 'chunked'],
  ['content-encoding', 'chunked'],
];
const codings = CODINGS.flatMap((line): readonly Http2Case[] => {
  const about = (name: string) => ({
    name: `H2.TE ${JSON.stringify(line)}: ${name}`,
    family: 'transfer-encoding',
    success: 'the upstream reads chunks, and serves what is behind the last one',
  });
  const lines = [...CREATE, line];
  const split = (body: string): Http2Case => ({
    ...about('chunks as DATA'),
    signs: [{ route: 'createOrder', body }],
    frames: [
      { kind: 'headers', lines },
      { kind: 'data', text: body, endStream: true },
    ],
  });
  return [
    hiddenCase(about('a request as DATA'), lines),
    split(`0\r\n\r\n${HIDDEN}`),
    { ...hiddenCase(about('with a length'), [...lines, ['content-length', '{length}']]) },
  ];
});

const CONNECTION_LINES: readonly LineText[] = [
  ['connection', 'close'],
  ['connection', 'keep-alive'],
  ['connection', 'x-proofgate-signature'],
  ['connection', 'content-length'],
  ['connection', 'host'],
  ['connection', 'upgrade'],
  ['connection', 'te'],
  ['connection', ''],
  ['keep-alive', 'timeout=5'],
  ['keep-alive', ''],
  ['proxy-connection', 'keep-alive'],
  ['proxy-connection', 'x-proofgate-signature'],
  ['proxy-authorization', 'Basic AAAA'],
  ['upgrade', 'websocket'],
  ['upgrade', 'h2c'],
  ['upgrade', ''],
  ['http2-settings', 'AAMAAABkAARAAAAAAAIAAAAA'],
  ['te', 'trailers'],
  ['te', 'gzip'],
  ['te', 'trailers, gzip'],
  ['te', ''],
  ['trailer', 'x-proofgate-subject'],
  ['expect', '100-continue'],
  ['expect', 'x'],
  ['expect', ' 100-continue'],
  ['sec-websocket-key', 'AAAAAAAAAAAAAAAAAAAAAA=='],
];
const connectionLines = CONNECTION_LINES.flatMap((line): readonly Http2Case[] => {
  const about = (name: string) => ({
    name: `connection-specific ${JSON.stringify(line)}: ${name}`,
    family: 'connection',
    success: 'a header that was verified does not reach the upstream, or the point opens a tunnel',
  });
  return [readCase(about('GET'), [...READ, line]), hiddenCase(about('POST'), [...CREATE, line])];
});

const TRAILERS: readonly LineText[] = [
  ['x-tenant', 't2'],
  ['x-proofgate-subject', 'root'],
  ['x_proofgate_subject', 'root'],
  ['X-Proofgate-Subject', 'root'],
  ['x-proofgate-decision-id', '00000000-0000-4000-8000-000000000000'],
  ['x-proofgate-signature', 'AAAA'],
  ['authorization', 'Bearer root'],
  ['host', 'api.other.example'],
  ['content-length', '0'],
  ['content-length', '500'],
  ['transfer-encoding', 'chunked'],
  ['connection', 'x-proofgate-subject'],
  ['te', 'trailers'],
  ['trailer', 'x-proofgate-subject'],
  ['expect', '100-continue'],
  ['x-http-method-override', 'DELETE'],
  ['x-original-url', '/v1/payroll'],
  [':path', '/v1/payroll'],
  [':method', 'DELETE'],
  [':authority', 'api.other.example'],
  [':status', '200'],
  [':subject', 'root'],
  ['x-a', 'b\r\nx-proofgate-subject: root'],
  ['x-a', 'b\r\n\r\nGET /v1/payroll?case={id} HTTP/1.1\r\nHost: api.shop.example\r\n\r\n'],
  ['x-a\r\nx-proofgate-subject', 'root'],
  ['x-a\x00', 'b'],
  ['', 'b'],
  [' ', 'b'],
];
const trailers = TRAILERS.flatMap((line): readonly Http2Case[] =>
  (['ended', 'not ended'] as const).map((how) => ({
    name: `trailer ${JSON.stringify(line)}, ${how}`,
    family: 'trailers',
    success: 'the upstream takes a trailer for a header, or for a request',
    signs: [{ route: 'createOrder', body: 'order', headers: [{ name: 'x-tenant', value: 't1' }] }],
    frames: [
      { kind: 'headers', lines: CREATE },
      { kind: 'data', text: 'order' },
      { kind: 'headers', lines: [line], endStream: how === 'ended' },
      ...(how === 'ended' ? [] : [{ kind: 'data', text: HIDDEN, endStream: true } as const]),
    ],
  })),
);

const bodies = named<readonly string[]>({
  'empty DATA first': ['', '{body}'],
  'empty DATA last': ['{body}', ''],
  'ten empty DATA': [...Array.from({ length: 10 }, () => ''), '{body}'],
  'other bytes': ['x{body}'],
  'a byte more': ['{body}', 'x'],
  nothing: [''],
}).map(
  ([name, parts]): Http2Case => ({
    name: `DATA: ${name}`,
    family: 'length',
    success: 'the upstream receives another body than the signed one',
    signs: [{ route: 'createOrder', body: HIDDEN }],
    frames: [
      { kind: 'headers', lines: CREATE },
      ...parts.map((text, index) => ({ kind: 'data', text, endStream: index === parts.length - 1 }) as const),
    ],
  }),
);

export const FRAMING: readonly Http2Case[] = [
  ...lengths,
  ...twoLengths,
  ...codings,
  ...connectionLines,
  ...trailers,
  ...bodies,
];
