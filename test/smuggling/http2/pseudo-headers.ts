/** Pseudo headers: repeated, missing, misplaced, unknown, and with values of other forms (RFC 9113 section 8.3). */
import { type Http2Case, type LineText, named } from '../../support/hostile/cases.ts';
import { READ, readCase, replaced, without } from './requests.ts';

const OTHER = {
  ':method': 'DELETE',
  ':scheme': 'https',
  ':authority': 'api.other.example',
  ':path': '/v1/payroll',
} as const;
const about = (name: string) => ({
  name: `pseudo header: ${name}`,
  family: 'pseudo-headers',
  success: 'the upstream serves another method, target or host than the signed one',
});
const proof: LineText = ['{proof}', ''];
const regular: LineText = ['x-a', 'b'];

const repeated = Object.entries(OTHER).flatMap(([name, other]): readonly Http2Case[] => {
  const own = READ.find(([key]) => key === name)?.[1] ?? '';
  const extra: LineText = [name, other];
  return [
    readCase(about(`${name} twice, the other first`), [extra, ...READ]),
    readCase(about(`${name} twice, the other second`), [...READ.slice(0, 4), extra, proof]),
    readCase(about(`${name} twice, the same`), [[name, own], ...READ]),
    readCase(about(`${name} again behind regular ones`), [...READ, extra]),
    readCase(about(`${name} only behind regular ones`), [...without(READ, name), [name, own]]),
    readCase(about(`${name} missing`), without(READ, name)),
    readCase(about(`${name} empty`), replaced(READ, name, '')),
    readCase(about(`${name} of another request`), replaced(READ, name, other)),
    readCase(about(`${name} with a space first`), replaced(READ, name, ` ${own}`)),
    readCase(about(`${name} with a space last`), replaced(READ, name, `${own} `)),
    readCase(about(`${name} with a tab last`), replaced(READ, name, `${own}\t`)),
    readCase(about(`${name} in capitals`), [[name.toUpperCase(), own], ...without(READ, name)]),
    readCase(about(`${name} without its colon, of another request`), [...READ, [name.slice(1), other]]),
  ];
});

const UNKNOWN: readonly LineText[] = [
  [':status', '200'],
  [':subject', 'root'],
  [':host', 'api.other.example'],
  [':version', 'HTTP/1.0'],
  [':protocol', 'websocket'],
  [':protocol', ''],
  [':', 'x'],
  [': path', '/v1/payroll'],
  [':path ', '/v1/payroll'],
  [':transfer-encoding', 'chunked'],
  [':content-length', '0'],
];
const unknown = UNKNOWN.flatMap((line): readonly Http2Case[] => [
  readCase(about(`unknown ${JSON.stringify(line[0])}: ${line[1]}`), [...READ.slice(0, 4), line, proof]),
  readCase(about(`unknown ${JSON.stringify(line[0])}: ${line[1]} behind regular ones`), [...READ, line]),
]);

const TARGET = '/v1/orders/4711';
const PATHS = [
  '*',
  'v1/orders/4711',
  '//v1/orders/4711',
  `http://api.shop.example${TARGET}`,
  `http://api.other.example${TARGET}`,
  `//api.other.example${TARGET}`,
  `@api.other.example${TARGET}`,
  `api.other.example:80`,
  `${TARGET} HTTP/1.1`,
  `${TARGET} HTTP/1.1\r\nHost: api.other.example\r\n\r\n`,
  `${TARGET}#x`,
  `${TARGET}?`,
  `${TARGET}?a`,
  `${TARGET}/`,
  `${TARGET}/..`,
  `${TARGET}/%2e%2e/payroll`,
  `${TARGET}%00`,
  `${TARGET};a=b`,
  `\\v1\\orders\\4711`,
  '/v1/orders/%34711',
  `/v1/payroll/..${TARGET.slice(3)}`,
  `${TARGET} /v1/payroll`,
  `?${TARGET}`,
  `/${'a'.repeat(70_000)}`,
];
const paths = PATHS.map((path) =>
  readCase(about(`:path ${JSON.stringify(path.slice(0, 60))}`), replaced(READ, ':path', path)),
);

const AUTHORITIES = [
  'api.shop.example:80',
  'API.SHOP.EXAMPLE',
  'api.shop.example.',
  'api.shop.example:',
  'api.shop.example:443',
  'api.shop.example:080',
  'api.shop.example:65616',
  'root@api.shop.example',
  'api.shop.example@api.other.example',
  'api.shop.example/v1',
  'api.shop.example?x',
  'api.shop.example#x',
  'api.shop.example\\x',
  'api.shop.example,api.other.example',
  'api.shop.example api.other.example',
  'api.shop.example;x',
  'http://api.shop.example',
  '[api.shop.example]',
  'api%2eshop.example',
  '.api.shop.example',
];
const authorities = AUTHORITIES.map((authority) =>
  readCase(about(`:authority ${JSON.stringify(authority)}`), replaced(READ, ':authority', authority)),
);

const METHODS = [
  'get',
  'Get',
  'GET /v1/payroll HTTP/1.1\r\nx-a:',
  'GET /v1/payroll',
  'G\x00ET',
  'GET:',
  '"GET"',
  'G\xffT',
  'PRI',
  'HEAD',
  'TRACE',
  'OPTIONS',
  'POST',
  'CONNECT',
  'M'.repeat(5000),
];
const methods = METHODS.map((method) =>
  readCase(about(`:method ${JSON.stringify(method.slice(0, 40))}`), replaced(READ, ':method', method)),
);

const SCHEMES = [
  'HTTP',
  'ftp',
  'file',
  'ws',
  'http:',
  'http://api.other.example/?',
  '://',
  'javascript',
  'http\r\nx-a: b',
  'h'.repeat(300),
];
const schemes = SCHEMES.map((scheme) =>
  readCase(about(`:scheme ${JSON.stringify(scheme.slice(0, 40))}`), replaced(READ, ':scheme', scheme)),
);

const HOSTS = named<readonly string[]>({
  same: ['api.shop.example'],
  another: ['api.other.example'],
  'in capitals': ['API.SHOP.EXAMPLE'],
  'with a port': ['api.shop.example:80'],
  empty: [''],
  'the same twice': ['api.shop.example', 'api.shop.example'],
  'two others': ['api.shop.example', 'api.other.example'],
  list: ['api.shop.example, api.other.example'],
  'with userinfo': ['root@api.shop.example'],
  'with CRLF': ['api.shop.example\r\nx-proofgate-subject: root'],
});
const hosts = HOSTS.flatMap(([name, values]): readonly Http2Case[] => {
  const lines = values.map((value): LineText => ['host', value]);
  return [
    readCase(about(`host beside :authority: ${name}`), [...READ, ...lines]),
    readCase(about(`host for :authority: ${name}`), [...without(READ, ':authority'), ...lines]),
    readCase(about(`host before :authority: ${name}`), [
      ...without(READ, ':authority').slice(0, 3),
      ...lines,
      [':authority', 'api.shop.example'],
      proof,
    ]),
  ];
});

const connects = named<readonly LineText[]>({
  'to the site': [[':method', 'CONNECT'], [':authority', 'api.shop.example:80'], proof],
  'to another host': [[':method', 'CONNECT'], [':authority', '127.0.0.1:1'], proof],
  'with a path': replaced(READ, ':method', 'CONNECT'),
  'extended, websocket': [
    ...replaced(READ, ':method', 'CONNECT').slice(0, 4),
    [':protocol', 'websocket'],
    proof,
  ],
  'extended, connect-udp': [
    ...replaced(READ, ':method', 'CONNECT').slice(0, 4),
    [':protocol', 'connect-udp'],
    proof,
  ],
  'extended, CRLF': [
    ...replaced(READ, ':method', 'CONNECT').slice(0, 4),
    [':protocol', 'websocket\r\nx-a: b'],
    proof,
  ],
  'extended, websocket for a GET': [...READ.slice(0, 4), [':protocol', 'websocket'], regular, proof],
}).map(
  ([name, lines]): Http2Case => ({
    name: `CONNECT: ${name}`,
    family: 'connect',
    success: 'the point opens a tunnel to the upstream, and requests pass unverified',
    signs: [{ route: 'readOrder' }],
    frames: [
      { kind: 'raw', type: 4, hex: '000800000001' },
      { kind: 'headers', lines },
      { kind: 'data', text: 'GET /v1/payroll?case={id} HTTP/1.1\r\nHost: api.shop.example\r\n\r\n' },
    ],
  }),
);

export const PSEUDO_HEADERS: readonly Http2Case[] = [
  ...repeated,
  ...unknown,
  ...paths,
  ...authorities,
  ...methods,
  ...schemes,
  ...hosts,
  ...connects,
];
