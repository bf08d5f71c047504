/** Changes of a signed request on its way, the same for every format. */
import type { Change, Sent } from './attack.ts';

type TextChange = readonly [name: string, from: string | RegExp, to: string];

function replaced(text: string, from: string | RegExp, to: string): string {
  const result = text.replace(from, to);
  if (result === text) throw new Error(`nothing to replace: ${String(from)}`);
  return result;
}

const TARGET = 'method, scheme, authority, path';

const METHODS: readonly Change[] = [
  'DELETE',
  'PUT',
  'HEAD',
  'QUERY',
  'get',
  'Get',
  'GET ',
  'G\u00cbT',
  '',
].map((method) => [TARGET, `method ${JSON.stringify(method)}`, (sent) => ({ ...sent, method })]);

const SCHEMES: readonly Change[] = ['http', 'wss', 'httpss', ''].map((scheme) => [
  TARGET,
  `scheme ${JSON.stringify(scheme)}`,
  (sent) => ({ ...sent, scheme }),
]);

const AUTHORITIES: readonly Change[] = (
  [
    ['another origin of the site', 'partners.shop.example:8443'],
    ['an origin of no site', 'evil.example'],
    ['another port', 'api.shop.example:8443'],
    ['the port of http', 'api.shop.example:80'],
    ['a port with a zero before it', 'api.shop.example:0443'],
    ['no port behind a colon', 'api.shop.example:'],
    ['a dot behind it', 'api.shop.example.'],
    ['a user name', 'user@api.shop.example'],
    ['the name as a user name', 'api.shop.example@evil.example'],
    ['an escape', 'api%2eshop.example'],
    ['a subdomain', 'x.api.shop.example'],
    ['a longer name', 'evilapi.shop.example'],
    ['a shorter name', 'shop.example'],
    ['two names', 'api.shop.example, evil.example'],
    ['a path', 'api.shop.example/v1'],
    ['white space before it', ' api.shop.example'],
    ['a letter of another alphabet', '\u0430pi.shop.example'],
    ['an address', '[::1]'],
    ['nothing', ''],
  ] as const
).map(([name, authority]) => [TARGET, `authority: ${name}`, (sent) => ({ ...sent, authority })]);

/** Of `/v1/orders/17`. */
const PATHS: readonly TextChange[] = [
  ['another item', '17', '18'],
  ['a shorter item', '17', '1'],
  ['a longer item', '17', '177'],
  ['a slash behind it', '17', '17/'],
  ['two slashes within', 'orders/', 'orders//'],
  ['two slashes at its start', '/v1', '//v1'],
  ['a dot segment', '/v1', '/v1/.'],
  ['a dot segment upwards', '/v1', '/v1/x/..'],
  ['an escaped dot segment', '/v1', '/v1/x/%2e%2e'],
  ['an escaped digit', '17', '%317'],
  ['an escaped slash', 'orders/', 'orders%2F'],
  ['a backslash', 'orders/', 'orders\\'],
  ['another case of its first segment', 'v1', 'V1'],
  ['another case of its second segment', 'orders', 'Orders'],
  ['a parameter of a segment', '17', '17;a=1'],
  ['a parameter upwards', '17', '..;/17'],
  ['a null', '17', '17%00'],
  ['an escaped space', '17', '17%20'],
  ['an escaped line feed', '17', '17%0a'],
  ['an extension', '17', '17.json'],
  ['an escaped question mark', '17', '17%3Fa=1'],
  ['an escaped number sign', '17', '17%23'],
  ['a fragment', '17', '17#a'],
  ['an overlong escape', '17', '%c0%b117'],
  ['an incomplete escape', '17', '17%2'],
  ['no slash before it', '/v1', 'v1'],
  ['an absolute form', '/v1', 'https://api.shop.example/v1'],
  ['the path of another route', 'orders/17', 'prices'],
  ['a path of no route', 'v1', 'v2'],
];

/** Of `?fields=id&fields=total`. */
const QUERIES: readonly TextChange[] = [
  ['another value', '=id', '=all'],
  ['another name', '?fields', '?field'],
  ['its names in another order', 'id&fields=total', 'total&fields=id'],
  ['one parameter less', '&fields=total', ''],
  ['one parameter more', /$/, '&admin=1'],
  ['one parameter twice', /$/, '&fields=total'],
  ['an empty parameter more', /$/, '&'],
  ['none', /\?.*$/, ''],
  ['an empty one', /\?.*$/, '?'],
  ['two question marks', '?', '??'],
  ['an escaped letter', '=id', '=%69d'],
  ['another case of a name', '?fields', '?Fields'],
  ['another case of a value', '=id', '=ID'],
  ['another separator', '&', ';'],
  ['an escaped separator', '&', '%26'],
  ['a plus', '=id', '=id+'],
  ['an escaped space', '=id', '=id%20'],
  ['no equals sign', 'fields=id', 'fieldsid'],
  ['brackets', '?fields', '?fields[]'],
  ['a fragment', /$/, '#a'],
];

function ofTarget(binding: Change[0], part: string, changes: readonly TextChange[]): readonly Change[] {
  return changes.map(([name, from, to]) => [
    binding,
    `${part}: ${name}`,
    (sent) => ({ ...sent, target: replaced(sent.target, from, to) }),
  ]);
}

/** For a GET of `/v1/orders/17`, with or without a query. */
export const TARGET_CHANGES: readonly Change[] = [
  ...METHODS,
  ...SCHEMES,
  ...AUTHORITIES,
  ...ofTarget(TARGET, 'path', PATHS),
];

/** For a target that ends in `?fields=id&fields=total`. */
export const QUERY_CHANGES: readonly Change[] = ofTarget('query', 'query', QUERIES);

const exact = (text: string | Buffer): Sent['body'] => ({ kind: 'exact', bytes: Buffer.from(text) });

/** For the body `{"amount":1}`. */
export const BODY_CHANGES: readonly Change[] = (
  [
    ['another byte', exact('{"amount":2}')],
    ['a byte less', exact('{"amount":1')],
    ['a line feed more', exact('{"amount":1}\n')],
    ['a byte order mark', exact('\ufeff{"amount":1}')],
    ['white space within', exact('{"amount": 1}')],
    ['a member twice', exact('{"amount":1,"amount":1}')],
    ['an escaped letter', exact('{"\\u0061mount":1}')],
    ['another character encoding', exact(Buffer.from('{"amount":1}', 'utf16le'))],
    ['itself twice', exact('{"amount":1}{"amount":1}')],
    ['no bytes', exact('')],
    ['none', { kind: 'none' }],
    ['unknown to the point', { kind: 'unknown' }],
    ['the hash of another', { kind: 'hashed', sha256: 'A'.repeat(43) }],
    ['no hash', { kind: 'hashed', sha256: '' }],
  ] as const satisfies readonly (readonly [string, Sent['body']])[]
).map(([name, body]) => ['body', `body: ${name}`, (sent) => ({ ...sent, body })]);

/** For a request with `x-tenant: acme` and `accept: text/html;q=0.5`, both bound. */
export const HEADER_CHANGES: readonly Change[] = (
  [
    ['another value', (value: string) => `${value}x`],
    ['another case', (value: string) => value.toUpperCase()],
    ['an empty value', () => ''],
    ['a second value', (value: string) => `${value}, ${value}`],
    ['white space within', (value: string) => `${value.slice(0, 2)} ${value.slice(2)}`],
    ['an escaped letter', (value: string) => `%${value.charCodeAt(0).toString(16)}${value.slice(1)}`],
    ['quotes', (value: string) => `"${value}"`],
    ['a null', (value: string) => `${value}\0`],
  ] as const
).flatMap(([name, change]) =>
  ['x-tenant', 'accept'].map(
    (header): Change => [
      'headers',
      `${header}: ${name}`,
      (sent) => ({
        ...sent,
        lines: sent.lines.map((line) =>
          line.name === header ? { name: header, value: change(line.value) } : line,
        ),
      }),
    ],
  ),
);
