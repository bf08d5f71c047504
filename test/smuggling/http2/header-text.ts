/**
 * Bytes in names and values that become lines, or other names, when a request is written as HTTP/1.1 (RFC 9113 sections 8.2.1
 * and 10.3; PortSwigger "HTTP/2: The Sequel is Always Worse", 2021).
 */
import { type Http2Case, type LineText, named } from '../../support/hostile/cases.ts';
import { CREATE, READ, readCase, replaced, SIGNS_HIDDEN, SIGNS_TENANT, TENANT } from './requests.ts';

const INJECTED = named({
  CRLF: '\r\n',
  LF: '\n',
  CR: '\r',
  'CR CR LF': '\r\r\n',
  NUL: '\x00',
  'vertical tab': '\x0b',
  'form feed': '\x0c',
  'byte 0x1f': '\x1f',
  'byte 0x7f': '\x7f',
  'byte 0x85': '\x85',
  'byte 0xff': '\xff',
  'CRLF in three bytes': '\xe5\x98\x8d\xe5\x98\x8a',
  'CRLF and a space': '\r\n ',
});

const CARRIERS: readonly LineText[] = [
  [':method', 'GET'],
  [':scheme', 'http'],
  [':authority', 'api.shop.example'],
  [':path', '/v1/orders/4711'],
  ['x-a', 'b'],
  ['cookie', 'a=b'],
  ['user-agent', 'u'],
  ['te', 'trailers'],
];
const SUBJECT = 'x-proofgate-subject: root';
const about = (name: string) => ({
  name,
  family: 'header-text',
  success: 'written as HTTP/1.1, the value is a further header line or request',
});

const inValues = INJECTED.flatMap(([what, bytes]) =>
  CARRIERS.flatMap(([name, value]): readonly Http2Case[] => {
    const lines = (text: string) =>
      READ.some(([key]) => key === name) ? replaced(READ, name, text) : [...READ, [name, text] as const];
    return [
      readCase(about(`${what} in ${name}`), lines(`${value}${bytes}${SUBJECT}${bytes}x-b: c`)),
      readCase(about(`${what} at the end of ${name}`), lines(`${value}${bytes}`)),
    ];
  }),
);

const requestLines = INJECTED.slice(0, 5).map(([what, bytes]) =>
  readCase(about(`${what}, and a whole request in a value`), [
    ...READ,
    [
      'x-a',
      `b${bytes}${bytes}GET /v1/payroll?case={id} HTTP/1.1${bytes}Host: api.shop.example${bytes}${bytes}`,
    ],
  ]),
);

const atStart = INJECTED.map(([what, bytes]) =>
  readCase(about(`${what} at the start of a value`), [...READ, ['x-a', `${bytes}${SUBJECT}`]]),
);

const inSignedHeader = INJECTED.map(
  ([what, bytes]): Http2Case => ({
    ...about(`${what} in the signed header`),
    success: 'the upstream reads another value of the signed header',
    signs: SIGNS_TENANT,
    frames: [
      { kind: 'headers', lines: [...TENANT, ['x-tenant', `t1${bytes}x-tenant: t2`]], endStream: true },
    ],
  }),
);

const inFraming = INJECTED.map(
  ([what, bytes]): Http2Case => ({
    ...about(`${what} in content-length`),
    success: 'the upstream reads another length, and serves the body',
    signs: SIGNS_HIDDEN,
    frames: [
      {
        kind: 'headers',
        lines: [...CREATE, ['content-length', `{length}${bytes}transfer-encoding: chunked`]],
      },
      { kind: 'data', text: '{body}', endStream: true },
    ],
  }),
);

/** Names, whole. */
const NAMES = named({
  'capital letter': 'X-proofgate-subject',
  capitals: 'X-PROOFGATE-SUBJECT',
  underscores: 'x_proofgate_subject',
  'underscore last': 'x-proofgate_subject',
  dots: 'x.proofgate.subject',
  'space last': 'x-proofgate-subject ',
  'tab last': 'x-proofgate-subject\t',
  'space first': ' x-proofgate-subject',
  'NUL last': 'x-proofgate-subject\x00',
  'NUL first': '\x00x-proofgate-subject',
  'colon last': 'x-proofgate-subject:',
  'colon and value': 'x-proofgate-subject: root\r\nx-a',
  'colon inside': 'x-a: b\nx-proofgate-subject',
  'colon first': ':x-proofgate-subject',
  'two colons first': '::path',
  'CR last': 'x-proofgate-subject\r',
  'LF last': 'x-proofgate-subject\n',
  'CRLF first': '\r\nx-proofgate-subject',
  'CRLF inside': 'x-a\r\nx-proofgate-subject',
  folded: 'x-a\r\n x-proofgate-subject',
  'byte 0x7f': 'x-proofgate-subject\x7f',
  'byte 0x80': 'x-proofgate-subject\x80',
  'byte 0xff': 'x-proofgate-subject\xff',
  'Kelvin sign': 'x-proofgate-\xe2\x84\xaaey-id',
  quotes: '"x-proofgate-subject"',
  parentheses: 'x-proofgate-subject()',
  slash: 'x-proofgate/subject',
  empty: '',
  'space alone': ' ',
  plain: 'x-proofgate-subject',
  decision: 'x-proofgate-decision-id',
  'unknown of ours': 'x-proofgate-roles',
  'original URL': 'x-original-url',
  'method override': 'x-http-method-override',
  'partial body': 'x-envoy-auth-partial-body',
  'second authorization': 'authorization',
  'second transcript': 'x-proofgate-transcript',
  'host with a space': 'host ',
  'host with an underscore': 'host_',
  'host in capitals': 'Host',
  'transfer-encoding in capitals': 'Transfer-Encoding',
  'transfer-encoding with a space': 'transfer-encoding ',
  transfer_encoding: 'transfer_encoding',
  'transfer-encoding with a colon': 'transfer-encoding:',
  'transfer-encoding with CR': 'transfer-encoding\r',
  content_length: 'content_length',
  'content-length with a space': 'content-length ',
  'content-length in capitals': 'Content-Length',
});

const inNames = NAMES.flatMap(([what, name]): readonly Http2Case[] => [
  readCase({ ...about(`name: ${what}`), success: 'the upstream receives an unverified header' }, [
    ...READ,
    [name, 'root'],
  ]),
  {
    ...about(`name before a body: ${what}`),
    success: 'the upstream takes the name for framing, and serves the body',
    signs: SIGNS_HIDDEN,
    frames: [
      { kind: 'headers', lines: [...CREATE, [name, name.includes('length') ? '0' : 'chunked']] },
      { kind: 'data', text: '{body}', endStream: true },
    ],
  },
]);

export const HEADER_TEXT: readonly Http2Case[] = [
  ...inValues,
  ...requestLines,
  ...atStart,
  ...inSignedHeader,
  ...inFraming,
  ...inNames,
];
