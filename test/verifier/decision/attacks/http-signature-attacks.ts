/** Attacks on HTTP message signatures, by a derived key alone and with a passport. */
import { hash } from 'node:crypto';
import { signMessage } from '../../../../src/protocol/signature.ts';
import type { SigningKey } from '../../../../src/protocol/signing.ts';
import { AUTH_SITE, NOW_SECONDS, ORIGIN } from '../../../support/fixtures/bundle-content.ts';
import type { HeaderLine } from '../../../support/fixtures/signed-request.ts';
import { KEY_ID } from '../../../support/fixtures/snapshot.ts';
import {
  type Attack,
  attack,
  type Binding,
  type Change,
  renamed,
  repeated,
  type Sent,
  valueIn,
  withLines,
  withoutLine,
  withValue,
} from './attack.ts';
import { dpopRequest } from './dpop-request.ts';
import { BODY_CHANGES, HEADER_CHANGES, QUERY_CHANGES, TARGET_CHANGES } from './in-transit.ts';
import { FIXED_JTI, keys, passportOf, stranger, transcriptRequest } from './requests.ts';

const BODY = Buffer.from('{"amount":1}');
const digestOf = (body: Buffer) => `sha-256=:${hash('sha256', body, 'base64')}:`;

/** The request before it is signed. */
type Plain = Omit<Sent, 'lines'> & { readonly lines: readonly HeaderLine[] };

const get = (target: string, ...lines: readonly HeaderLine[]): Plain => ({
  method: 'GET',
  scheme: 'https',
  authority: ORIGIN.slice(8),
  target,
  lines,
  body: { kind: 'none' },
});

const READ = get('/v1/orders/17?fields=id&fields=total');
const TENANT = get(
  '/v1/tenants?page=17',
  { name: 'x-tenant', value: 'acme' },
  { name: 'accept', value: 'text/html;q=0.5' },
);
const WRITE: Plain = {
  ...get(
    '/v1/orders',
    { name: 'content-digest', value: digestOf(BODY) },
    { name: 'content-type', value: 'application/json' },
  ),
  method: 'POST',
  body: { kind: 'exact', bytes: BODY },
};

interface Signing {
  readonly key?: SigningKey;
  /** As they are written in the list, with quotes. */
  readonly components?: readonly string[];
  readonly params?: readonly (readonly [name: string, value: string])[];
  readonly label?: string;
  /** The signature base that is signed. */
  readonly base?: (base: string) => string;
}

const quoted = (name: string) => `"${name}"`;

/** Parameters with other values; undefined leaves one out. */
function params(changes: Readonly<Record<string, string | undefined>> = {}): NonNullable<Signing['params']> {
  const usual: Readonly<Record<string, string | undefined>> = {
    created: String(NOW_SECONDS),
    expires: String(NOW_SECONDS + 60),
    nonce: quoted(FIXED_JTI),
    keyid: quoted(KEY_ID.billing),
    tag: quoted(`proofgate/${AUTH_SITE}`),
    ...changes,
  };
  return Object.entries(usual).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, value] as const],
  );
}

const own = ({ lines }: Plain) => lines.map(({ name }) => quoted(name));

function sign(request: Plain, signing: Signing = {}): Sent {
  const { base, components, key = keys.billing, label = 'sig' } = signing;
  const covered = components ?? [quoted('@method'), quoted('@target-uri'), ...own(request)];
  const stated = (signing.params ?? params()).map(([name, value]) =>
    value === '' ? `;${name}` : `;${name}=${value}`,
  );
  const input = `(${covered.join(' ')})${stated.join('')}`;
  const text = [
    ...covered.map((item) => `${item}: ${componentOf(request, item.slice(1, item.lastIndexOf('"')))}`),
    `"@signature-params": ${input}`,
  ].join('\n');
  const bytes = Buffer.from(base?.(text) ?? text, 'latin1');
  const signature = signMessage(key.publicKey.algorithm, key.privateKey, bytes).toString('base64');
  return withLines(
    { name: 'signature-input', value: `${label}=${input}` },
    { name: 'signature', value: `${label}=:${signature}:` },
  )(request);
}

function componentOf({ authority, lines, method, scheme, target }: Plain, name: string): string {
  const [path = '', query] = target.split('?');
  const derived: Readonly<Record<string, string>> = {
    '@method': method,
    '@target-uri': `${scheme}://${authority}${target}`,
    '@scheme': scheme,
    '@authority': authority,
    '@path': path,
    '@query': `?${query ?? ''}`,
    '@request-target': target,
  };
  return derived[name] ?? lines.find((line) => line.name === name)?.value ?? '';
}

const inTransit = (base: () => Sent, changes: readonly Change[]): readonly Attack[] =>
  changes.map(([binding, name, change]) => attack(binding, name, () => change(base())));

const signed = (binding: Binding, name: string, signing: Signing, request: Plain = READ): Attack =>
  attack(binding, name, () => sign(request, signing));

const input = (binding: Binding, name: string, from: string | RegExp, to: string): Attack =>
  attack(binding, `Signature-Input: ${name}`, () =>
    withValue('signature-input', (value) => value.replace(from, to))(sign(READ)),
  );

const signatureValue = (binding: Binding, name: string, change: (value: string) => string): Attack =>
  attack(binding, `Signature: ${name}`, () => withValue('signature', change)(sign(READ)));

const FIELDS = ['signature-input', 'signature'] as const;

/** Values of parameters changed on the way: the signature covers them. */
const CHANGED_PARAMETERS: readonly Attack[] = [
  input('time', 'created a second earlier', /created=\d+/, `created=${NOW_SECONDS - 1}`),
  input('time', 'expires later', /expires=\d+/, `expires=${NOW_SECONDS + 61}`),
  input('time', 'created and expires exchanged', /created=(\d+);expires=(\d+)/, 'created=$2;expires=$1'),
  input('one use', 'another nonce', FIXED_JTI, `${FIXED_JTI.slice(0, -1)}A`),
  input('one use', 'a longer nonce', FIXED_JTI, `${FIXED_JTI}A`),
  input('one use', 'the nonce in another case', FIXED_JTI, FIXED_JTI.toUpperCase()),
  input('token and key', "keyid of another client's key", KEY_ID.billing, KEY_ID.reporting),
  input('token and key', 'keyid of a revoked key', KEY_ID.billing, KEY_ID.revoked),
  input('token and key', 'keyid in another case', KEY_ID.billing, KEY_ID.billing.toUpperCase()),
  input('token and key', 'keyid with more behind it', KEY_ID.billing, `${KEY_ID.billing}_2`),
  input('token and key', 'keyid with white space', KEY_ID.billing, `${KEY_ID.billing} `),
  input('token and key', 'alg added', /$/, ';alg="ed25519"'),
  input('site', 'the tag of another site', AUTH_SITE, 'shop-us-1'),
  input('site', 'the tag in another case', AUTH_SITE, AUTH_SITE.toUpperCase()),
  input('site', 'the tag of another application', 'proofgate/', 'other/'),
  input('site', 'the tag with more behind it', AUTH_SITE, `${AUTH_SITE}0`),
  input('site', 'no tag', /;tag="[^"]*"/, ''),
  input('site', 'the tag as a token', /tag="[^"]*"/, `tag=proofgate/${AUTH_SITE}`),
  input('site', 'the tag twice', /$/, `;tag="proofgate/${AUTH_SITE}"`),
  input('site', 'the tag moved to a component', /"@method"(.*);tag="([^"]*)"/, '"@method";tag="$2"$1'),
];

/** Parameters that their signer left out, repeated, or gave another type. */
const SIGNED_PARAMETERS: readonly Attack[] = [
  ...['created', 'expires', 'nonce', 'keyid', 'tag'].map((name) =>
    signed(
      name === 'tag' ? 'site' : name === 'keyid' ? 'token and key' : name === 'nonce' ? 'one use' : 'time',
      `signed without ${name}`,
      { params: params({ [name]: undefined }) },
    ),
  ),
  ...(
    [
      [
        'time',
        'created',
        [`"${NOW_SECONDS}"`, `${NOW_SECONDS}.0`, `-${NOW_SECONDS}`, '0', `0${NOW_SECONDS}`, ''],
      ],
      ['time', 'expires', [`"${NOW_SECONDS + 60}"`, `${NOW_SECONDS + 60}.5`, '?1', '999999999999999', '']],
      [
        'one use',
        'nonce',
        [
          FIXED_JTI,
          `:${FIXED_JTI}==:`,
          '"short"',
          '""',
          `"${'A'.repeat(87)}"`,
          '"AAAA+AAA/AAAAAAAAAAAAA"',
          '',
        ],
      ],
      ['token and key', 'keyid', [KEY_ID.billing, '""', '"dk billing"', `"${'k'.repeat(300)}"`, '']],
      [
        'token and key',
        'alg',
        ['"rsa-pss-sha512"', '"hmac-sha256"', '"ecdsa-p256-sha256"', '"Ed25519"', '"none"', 'ed25519', ''],
      ],
      ['site', 'tag', ['"proofgate/"', '"proofgate"', '""', '']],
    ] as const
  ).flatMap(([binding, name, values]) =>
    values.map((value) =>
      signed(binding, `signed with ${name}=${value.slice(0, 40)}`, { params: params({ [name]: value }) }),
    ),
  ),
  ...['context', 'sub', 'iss', 'aud', 'route', 'alg2', 'sf', 'req'].map((name) =>
    signed('syntax', `signed with the parameter ${name}`, { params: params({ [name]: '"x"' }) }),
  ),
  signed('time', 'signed for 301 seconds', { params: params({ expires: String(NOW_SECONDS + 301) }) }),
  signed('time', 'signed for no second', { params: params({ expires: String(NOW_SECONDS) }) }),
  signed('time', 'signed with its end before its start', {
    params: params({ expires: String(NOW_SECONDS - 1) }),
  }),
  signed('time', 'signed for later', {
    params: params({ created: String(NOW_SECONDS + 6), expires: String(NOW_SECONDS + 66) }),
  }),
  signed('time', 'signed long ago', {
    params: params({ created: String(NOW_SECONDS - 66), expires: String(NOW_SECONDS - 6) }),
  }),
];

const components = (binding: Binding, name: string, list: readonly string[], request = READ): Attack =>
  signed(binding, `covered: ${name}`, { components: list }, request);

const [METHOD, URI] = ['"@method"', '"@target-uri"'];
const PARTS = ['"@scheme"', '"@authority"', '"@path"', '"@query"'];
const TARGET = 'method, scheme, authority, path';

const COMPONENTS: readonly Attack[] = [
  components('syntax', 'nothing', []),
  components(TARGET, 'no method', [URI]),
  components(TARGET, 'no target', [METHOD]),
  ...PARTS.map((left) =>
    components(left === '"@query"' ? 'query' : TARGET, `the parts without ${left}`, [
      METHOD,
      ...PARTS.filter((part) => part !== left),
    ]),
  ),
  components(TARGET, '@request-target alone', [METHOD, '"@request-target"']),
  components(TARGET, '@request-target, too', [METHOD, URI, '"@request-target"']),
  components('query', '@query-param', [METHOD, URI, '"@query-param";name="fields"']),
  components(TARGET, '@status', [METHOD, URI, '"@status"']),
  components(TARGET, '@METHOD', ['"@METHOD"', URI]),
  components(TARGET, 'method, a field', ['"method"', URI]),
  components(TARGET, 'the method twice', [METHOD, METHOD, URI]),
  components(TARGET, 'the target twice', [METHOD, URI, URI]),
  components('syntax', '@signature-params', [METHOD, URI, '"@signature-params"']),
  components('syntax', 'its own Signature', [METHOD, URI, '"signature"']),
  components('syntax', 'its own Signature-Input', [METHOD, URI, '"signature-input"']),
  components('time', 'created, a component', [METHOD, URI, '"created"']),
  ...['sf', 'bs', 'req', 'tr', 'key="a"', 'name="a"'].map((parameter) =>
    components(TARGET, `the method with ;${parameter}`, [`"@method";${parameter}`, URI]),
  ),
  components('headers', 'no x-tenant', [METHOD, URI, '"accept"'], TENANT),
  components('headers', 'no accept', [METHOD, URI, '"x-tenant"'], TENANT),
  components('headers', 'X-Tenant in capitals', [METHOD, URI, '"X-Tenant"', '"accept"'], TENANT),
  components('headers', 'a header that is not there', [METHOD, URI, '"x-other"']),
  ...['sf', 'bs', 'tr', 'req', 'key="acme"'].map((parameter) =>
    components(
      'headers',
      `x-tenant with ;${parameter}`,
      [METHOD, URI, `"x-tenant";${parameter}`, '"accept"'],
      TENANT,
    ),
  ),
  ...['x-proofgate-subject', 'x-proofgate-proof', 'x-proofgate-transcript', 'x-proofgate-passport'].map(
    (name) => signed('headers', `covered: ${name}`, {}, get(READ.target, { name, value: 'a' })),
  ),
  components('body', 'no digest', [METHOD, URI, '"content-type"'], WRITE),
  components('body', 'no type', [METHOD, URI, '"content-digest"'], WRITE),
  components(
    'body',
    'the digest with ;key',
    [METHOD, URI, '"content-digest";key="sha-256"', '"content-type"'],
    WRITE,
  ),
  components('body', 'the digest with ;sf', [METHOD, URI, '"content-digest";sf', '"content-type"'], WRITE),
  components('body', 'repr-digest in its place', [METHOD, URI, '"repr-digest"', '"content-type"'], WRITE),
];

const ROUTE = 'route, audience, issuer, subject';

const withRoute = (value: string) => sign(get(READ.target, { name: 'x-proofgate-route', value }));
const ROUTES: readonly Attack[] = [
  attack(ROUTE, 'the name of another route, covered', () => withRoute('prices')),
  attack(ROUTE, 'the name of no route, covered', () => withRoute('nothing')),
  attack(ROUTE, 'the name of the route in another case, covered', () => withRoute('Orders-Read')),
  attack(ROUTE, 'an empty name of a route, covered', () => withRoute('')),
  attack(ROUTE, 'two names of routes, covered', () => withRoute('orders-read, prices')),
  attack(ROUTE, 'the name of the route changed on the way', () =>
    withValue('x-proofgate-route', () => 'prices')(withRoute('orders-read')),
  ),
  attack(ROUTE, 'the covered name of the route removed', () =>
    withoutLine('x-proofgate-route')(withRoute('orders-read')),
  ),
  attack(ROUTE, 'the covered name of the route twice', () =>
    repeated('x-proofgate-route')(withRoute('orders-read')),
  ),
  attack(ROUTE, 'a route for which the client has no grant', () =>
    sign(WRITE, { key: keys.reporting, params: params({ keyid: quoted(KEY_ID.reporting) }) }),
  ),
  attack(ROUTE, 'a route of another origin', () => sign(get('/v1/partners'))),
  attack(ROUTE, 'a route of attested callers alone', () => sign(get('/v1/attested?n=1'))),
];

const DIGESTS: readonly Attack[] = (
  [
    ['of another body, covered', digestOf(Buffer.from('{"amount":2}'))],
    ['of no body', digestOf(Buffer.alloc(0))],
    ['with SHA-512 alone', `sha-512=:${hash('sha512', BODY, 'base64')}:`],
    ['with a wrong SHA-512 beside it', `${digestOf(BODY)}, sha-512=:${Buffer.alloc(64).toString('base64')}:`],
    ['with MD5', `md5=:${hash('md5', BODY, 'base64')}:`],
    ['with MD5 beside it', `${digestOf(BODY)}, md5=:${hash('md5', BODY, 'base64')}:`],
    ['with the member twice', `${digestOf(BODY)}, ${digestOf(BODY)}`],
    ['with two SHA-256, the second right', `${digestOf(Buffer.from('x'))}, ${digestOf(BODY)}`],
    [
      'in base64url',
      digestOf(BODY).replaceAll('+', '-').replaceAll('/', '_').replace('=:', '=:-').slice(0, -1),
    ],
    ['without padding', digestOf(BODY).replace('=:', '\n').replace('=:', ':').replace('\n', '=:')],
    ['in hexadecimal', `sha-256=:${hash('sha256', BODY, 'hex')}:`],
    ['as a string', `sha-256="${hash('sha256', BODY, 'base64')}"`],
    ['in capitals', digestOf(BODY).replace('sha-256', 'SHA-256')],
    ['with a parameter', `${digestOf(BODY)};a=1`],
    ['truncated', `sha-256=:${hash('sha256', BODY, 'buffer').subarray(0, 16).toString('base64')}:`],
    ['in the old form', `SHA-256=${hash('sha256', BODY, 'base64')}`],
    ['empty', ''],
  ] as const
).map(([name, value]) =>
  attack('body', `digest ${name}`, () =>
    sign({
      ...WRITE,
      lines: WRITE.lines.map((line) => (line.name === 'content-digest' ? { ...line, value } : line)),
    }),
  ),
);

const BODIES: readonly Attack[] = [
  ...inTransit(() => sign(WRITE), BODY_CHANGES),
  attack('body', 'digest and body changed on the way', () => {
    const other = Buffer.from('{"amount":9}');
    const changed = withValue('content-digest', () => digestOf(other))(sign(WRITE));
    return { ...changed, body: { kind: 'exact', bytes: other } };
  }),
  attack('body', 'digest removed on the way', () => withoutLine('content-digest')(sign(WRITE))),
  attack('body', 'digest repeated on the way', () => repeated('content-digest')(sign(WRITE))),
  attack('body', 'type changed on the way', () => withValue('content-type', () => 'text/xml')(sign(WRITE))),
  attack('body', 'type removed on the way', () => withoutLine('content-type')(sign(WRITE))),
  attack('body', 'type repeated on the way', () => repeated('content-type')(sign(WRITE))),
  attack('body', 'a type added to a digest that covered none', () => {
    const untyped = { ...WRITE, lines: WRITE.lines.slice(0, 1) };
    return withLines({ name: 'content-type', value: 'text/xml' })(sign(untyped));
  }),
  attack('body', 'a body for a request that covered none', () => ({
    ...sign(READ),
    body: { kind: 'exact', bytes: BODY },
  })),
  attack('body', 'a body with its digest for a request that covered none', () => ({
    ...withLines({ name: 'content-digest', value: digestOf(BODY) })(sign(READ)),
    body: { kind: 'exact', bytes: BODY },
  })),
  attack('body', 'a digest that no step compares', () =>
    sign({ ...WRITE, method: 'PUT', target: '/v1/uploads/a' }),
  ),
];

const HEADERS: readonly Attack[] = [
  ...inTransit(() => sign(TENANT), HEADER_CHANGES),
  ...['x-tenant', 'accept'].flatMap((name) => [
    attack('headers', `${name} removed`, () => withoutLine(name)(sign(TENANT))),
    attack('headers', `${name} on two lines`, () => repeated(name)(sign(TENANT))),
    attack('headers', `${name} moved to another name`, () => renamed(name, `${name}-2`)(sign(TENANT))),
  ]),
  attack('headers', 'the values of two headers exchanged', () => {
    const sent = sign(TENANT);
    const [tenant, accept] = [valueIn(sent, 'x-tenant'), valueIn(sent, 'accept')];
    return withValue('accept', () => tenant)(withValue('x-tenant', () => accept)(sent));
  }),
];

const other = 'cdn=("@authority");created=1';

const FIELD_SYNTAX: readonly Attack[] = [
  ...FIELDS.flatMap((name) => [
    attack('syntax', `${name} removed`, () => withoutLine(name)(sign(READ))),
    attack('syntax', `${name} empty`, () => withValue(name, () => '')(sign(READ))),
    attack('syntax', `${name} on two lines`, () => repeated(name)(sign(READ))),
    attack('syntax', `${name} with its member twice`, () => withValue(name, (v) => `${v}, ${v}`)(sign(READ))),
    attack('syntax', `${name} with another label`, () =>
      withValue(name, (v) => v.replace('sig', 'gis'))(sign(READ)),
    ),
    attack('syntax', `${name} with its label in capitals`, () =>
      withValue(name, (v) => v.replace('sig', 'SIG'))(sign(READ)),
    ),
    attack('syntax', `${name} without a label`, () => withValue(name, (v) => v.slice(4))(sign(READ))),
    attack('syntax', `${name} with a comma behind it`, () => withValue(name, (v) => `${v},`)(sign(READ))),
    attack('syntax', `${name} with an empty member before it`, () =>
      withValue(name, (v) => `, ${v}`)(sign(READ)),
    ),
    attack('syntax', `${name} with white space around =`, () =>
      withValue(name, (v) => v.replace('=', ' = '))(sign(READ)),
    ),
    attack('syntax', `${name} with a tab within`, () =>
      withValue(name, (v) => `${v.slice(0, 6)}\t${v.slice(6)}`)(sign(READ)),
    ),
    attack('syntax', `${name} of more than 8 KiB`, () =>
      withValue(name, (v) => `${v};x="${'x'.repeat(8192)}"`)(sign(READ)),
    ),
    attack('syntax', `${name} with 33 members`, () =>
      withValue(name, (v) =>
        [
          v,
          ...Array.from({ length: 32 }, (_, n) =>
            name === 'signature' ? `a${n}=:AAAA:` : `a${n}=("@path")`,
          ),
        ].join(', '),
      )(sign(READ)),
    ),
    attack('syntax', `${name} under a name with _`, () =>
      renamed(name, name.replace('-', '_').concat('_'))(sign(READ)),
    ),
  ]),
  input('syntax', 'two spaces between components', '" "', '"  "'),
  input('syntax', 'a tab between components', '" "', '"\t"'),
  input('syntax', 'no space between components', '" "', '""'),
  input('syntax', 'white space within the list', '("', '( "'),
  input('syntax', 'a component as a token', '"@method"', '@method'),
  input('syntax', 'a component as bytes', '"@method"', ':QG1ldGhvZA==:'),
  input('syntax', 'a component with an escape', '"@method"', '"@m\\ethod"'),
  input('syntax', 'a list within the list', '"@method"', '("@method")'),
  input('syntax', 'no list', /\(.*\)/, '"@method"'),
  input('syntax', 'an open list', ')', ''),
  input('syntax', 'white space before a parameter', ';created', '; created'),
  input('syntax', 'a parameter in capitals', ';created', ';Created'),
  input('syntax', 'a parameter twice', ';created', `;created=${NOW_SECONDS};created`),
  input('syntax', 'a parameter twice, first another value', ';created', ';created=1;created'),
  input('syntax', 'a plus before a number', 'created=', 'created=+'),
  input('syntax', 'a zero before a number', 'created=', 'created=0'),
  input('syntax', 'a number with a fraction', /created=\d+/, '$&.0'),
  input('syntax', 'a date', 'created=', 'created=@'),
  input('syntax', 'a character beyond ASCII', KEY_ID.billing, '\u00e4'),
  input(
    'syntax',
    'the component list in another order',
    '"@method" "@target-uri"',
    '"@target-uri" "@method"',
  ),
  input(
    'syntax',
    'the parameters in another order',
    /;created=(\d+);expires=(\d+)/,
    ';expires=$2;created=$1',
  ),
  input('syntax', 'a component less', '"@method" ', ''),
  input('syntax', 'a component more', '"@method"', '"@method" "accept"'),
  attack('syntax', 'two signatures for the site', () => {
    const [first, second] = [sign(READ), sign(READ, { label: 'sig2' })];
    return FIELDS.reduce<Sent>(
      (sent, name) => withValue(name, (value) => `${value}, ${valueIn(second, name)}`)(sent),
      first,
    );
  }),
  attack('syntax', "another's signature before ours that is malformed", () =>
    withValue('signature-input', (value) => `cdn=(@authority), ${value}`)(sign(READ)),
  ),
  attack('syntax', "another's signature on a line of its own", () =>
    withLines({ name: 'signature-input', value: other })(sign(READ)),
  ),
  signed('syntax', 'signed without the line of @signature-params', {
    base: (base) => base.replace(/\n"@signature-params.*$/, ''),
  }),
  signed('syntax', 'signed with a line feed behind it', { base: (base) => `${base}\n` }),
  signed('syntax', 'signed with CRLF', { base: (base) => base.replaceAll('\n', '\r\n') }),
  signed('syntax', 'signed without quotes', { base: (base) => base.replaceAll('"@method"', '@method') }),
  signed('query', 'signed without the query', { base: (base) => base.replace(/\?fields.*$/m, '') }),
  signed(TARGET, 'signed with the path alone', { base: (base) => base.replace(ORIGIN, '') }),
  signed(TARGET, 'signed with the method in small letters', { base: (base) => base.replace('GET', 'get') }),
  signed('syntax', 'signed with the label in its parameters', {
    base: (base) => base.replace('params": ', 'params": sig='),
  }),
];

const SIGNATURES: readonly Attack[] = [
  signatureValue('token and key', 'zeros', () => `sig=:${Buffer.alloc(64).toString('base64')}:`),
  signatureValue('token and key', 'another bit', (v) =>
    v.replace(/:(.)/, (_, c: string) => `:${c === 'A' ? 'B' : 'A'}`),
  ),
  signatureValue('token and key', 'shorter', () => `sig=:${Buffer.alloc(63).toString('base64')}:`),
  signatureValue('token and key', 'longer', () => `sig=:${Buffer.alloc(65).toString('base64')}:`),
  signatureValue('token and key', 'empty', () => 'sig=::'),
  signatureValue('syntax', 'in base64url', (v) => v.replace(/.{4}==:$/, '-_-_==:')),
  signatureValue('syntax', 'without padding', (v) => v.replace('==:', ':')),
  signatureValue('syntax', 'as a string', (v) => v.replace(':', '"').replace(/:$/, '"')),
  signatureValue('syntax', 'with a parameter', (v) => `${v};a=1`),
  signatureValue('syntax', 'with stray bits', (v) => v.replace(/.==:$/, 'B==:')),
  signed('token and key', 'by the key of another client', { key: keys.reporting }),
  signed('token and key', 'by a key of no client', { key: stranger }),
  signed('token and key', 'by a key of no client, named by its thumbprint', {
    key: stranger,
    params: params({ keyid: quoted(stranger.publicKey.thumbprint) }),
  }),
  signed('token and key', 'named by its thumbprint', {
    params: params({ keyid: quoted(keys.billing.publicKey.thumbprint) }),
  }),
  signed('token and key', "by a broker's key", {
    key: keys.broker,
    params: params({ keyid: quoted(KEY_ID.broker) }),
  }),
  signed('token and key', 'by a revoked key', {
    key: keys.revoked,
    params: params({ keyid: quoted(KEY_ID.revoked) }),
  }),
  signed('token and key', 'by a P-256 key that says ed25519', {
    key: keys.reporting,
    params: params({ keyid: quoted(KEY_ID.reporting), alg: '"ed25519"' }),
  }),
  attack('token and key', 'the signature of another request', () =>
    withValue('signature', () => valueIn(sign(TENANT), 'signature'))(sign(READ)),
  ),
];

/** With a passport that is covered. */
function withPassport(
  signing: Signing = {},
  passport = passportOf('billing', 'orders-read'),
  keyId = keys.billing.publicKey.thumbprint,
): Sent {
  const request = get(READ.target, { name: 'authorization', value: `Passport ${passport}` });
  return sign(request, { params: params({ keyid: quoted(keyId) }), ...signing });
}

const PASSPORTS: readonly Attack[] = [
  attack('token and key', 'a passport that is not covered', () =>
    withPassport({ components: [METHOD, URI] }),
  ),
  attack('token and key', 'the covered passport removed', () => withoutLine('authorization')(withPassport())),
  attack('token and key', 'the covered passport twice', () => repeated('authorization')(withPassport())),
  attack('token and key', 'another passport of the caller in its place', () =>
    withValue(
      'authorization',
      () => `Passport ${passportOf('billing', 'prices', { claims: { jti: 'another-passport-of-it' } })}`,
    )(withPassport()),
  ),
  attack('token and key', "another caller's passport in its place", () =>
    withValue('authorization', () => `Passport ${passportOf('reporting', 'orders-read')}`)(withPassport()),
  ),
  attack('token and key', "another caller's passport, covered", () =>
    withPassport({}, passportOf('reporting', 'orders-read')),
  ),
  attack('token and key', "another caller's passport, covered and named", () =>
    withPassport({}, passportOf('reporting', 'orders-read'), keys.reporting.publicKey.thumbprint),
  ),
  attack('token and key', 'key_id in place of the thumbprint', () =>
    withPassport({}, undefined, KEY_ID.billing),
  ),
  attack('token and key', 'the thumbprint of another key', () =>
    withPassport({}, undefined, stranger.publicKey.thumbprint),
  ),
  attack('token and key', 'a passport of a stranger', () =>
    withPassport(
      { key: stranger },
      passportOf('billing', 'orders-read', { passportKey: stranger, holder: stranger }),
      stranger.publicKey.thumbprint,
    ),
  ),
  attack('token and key', "a passport of one issuer with another's key", () =>
    withPassport(
      {},
      passportOf('broker', 'orders-read', { passportKey: keys.automation, holder: keys.billing }),
    ),
  ),
  attack('token and key', "a passport of one issuer under another's kid", () =>
    withPassport({}, passportOf('broker', 'orders-read', { kid: KEY_ID.automation, holder: keys.billing })),
  ),
  attack('token and key', 'the passport of a revoked key', () =>
    withPassport(
      { key: keys.revoked },
      passportOf('revoked', 'orders-read'),
      keys.revoked.publicKey.thumbprint,
    ),
  ),
  attack('token and key', 'a malformed passport', () => withPassport({}, 'a.b.c')),
  attack('token and key', 'an empty passport', () => withPassport({}, '')),
  attack(ROUTE, 'a passport for another audience', () =>
    withPassport({}, passportOf('billing', 'orders-read', { claims: { aud: 'https://other.shop.example' } })),
  ),
  attack(ROUTE, 'a passport of another subject', () =>
    withPassport({}, passportOf('billing', 'orders-read', { claims: { sub: 'client:reporting' } })),
  ),
  attack(ROUTE, 'a passport of another issuer', () =>
    withPassport({}, passportOf('billing', 'orders-read', { claims: { iss: 'https://evil.example' } })),
  ),
  attack(ROUTE, 'a passport of another trust domain', () =>
    withPassport({}, passportOf('billing', 'orders-read', { claims: { trust_domain: 'evil.example' } })),
  ),
  attack('time', 'an expired passport', () =>
    withPassport(
      {},
      passportOf('billing', 'orders-read', { claims: { iat: NOW_SECONDS - 600, exp: NOW_SECONDS - 300 } }),
    ),
  ),
  attack('time', 'a passport of the future', () =>
    withPassport(
      {},
      passportOf('billing', 'orders-read', { claims: { iat: NOW_SECONDS + 60, exp: NOW_SECONDS + 300 } }),
    ),
  ),
];

const AMONG_FORMATS: readonly Attack[] = [
  attack('format', 'a transcript beside it', () =>
    withLines(...transcriptRequest('orders-read').lines.filter(({ name }) => name !== 'authorization'))(
      sign(READ),
    ),
  ),
  attack('format', 'half a transcript beside it', () =>
    withLines({ name: 'x-proofgate-transcript', value: 'x' })(sign(READ)),
  ),
  attack('format', "a transcript's signature beside it", () =>
    withLines({ name: 'x-proofgate-signature', value: 'x' })(sign(READ)),
  ),
  attack('format', 'an empty transcript beside it', () =>
    withLines({ name: 'x-proofgate-transcript', value: '' })(sign(READ)),
  ),
  attack('format', 'a DPoP proof beside it', () =>
    withLines({ name: 'dpop', value: valueIn(dpopRequest(), 'dpop') })(sign(READ)),
  ),
  attack('format', 'an empty DPoP header beside it', () =>
    withLines({ name: 'dpop', value: '' })(sign(READ)),
  ),
  attack('format', 'a token of DPoP beside it', () =>
    withLines({ name: 'authorization', value: valueIn(dpopRequest(), 'authorization') })(sign(READ)),
  ),
  attack('format', 'a passport as DPoP token, covered', () => {
    const line = { name: 'authorization', value: `DPoP ${passportOf('billing', 'orders-read')}` };
    return sign(get(READ.target, line), {
      params: params({ keyid: quoted(keys.billing.publicKey.thumbprint) }),
    });
  }),
  ...['Bearer', 'Basic', 'Negotiate'].map((scheme) =>
    attack('format', `${scheme} beside it`, () =>
      withLines({ name: 'authorization', value: `${scheme} eA==` })(sign(READ)),
    ),
  ),
  attack('format', 'an empty Authorization beside it', () =>
    withLines({ name: 'authorization', value: '' })(sign(READ)),
  ),
  attack('format', 'a passport that is not signed for beside it', () =>
    withLines({ name: 'authorization', value: `Passport ${passportOf('billing', 'orders-read')}` })(
      sign(READ),
    ),
  ),
  attack('format', 'as a transcript', () => {
    const sent = sign(READ);
    const text = Buffer.from(valueIn(sent, 'signature-input')).toString('base64url');
    const signature = Buffer.from(valueIn(sent, 'signature').slice(5, -1), 'base64').toString('base64url');
    return {
      ...READ,
      lines: [
        { name: 'authorization', value: `Passport ${passportOf('billing', 'orders-read')}` },
        { name: 'x-proofgate-transcript', value: text },
        { name: 'x-proofgate-signature', value: signature },
      ],
    };
  }),
  attack('format', "a transcript's signature as its signature", () => {
    const signature = Buffer.from(
      valueIn(transcriptRequest('orders-read'), 'x-proofgate-signature'),
      'base64url',
    );
    return withValue('signature', () => `sig=:${signature.toString('base64')}:`)(sign(READ));
  }),
  attack('format', "a DPoP proof's signature as its signature", () => {
    const [, , signature = ''] = valueIn(dpopRequest(), 'dpop').split('.');
    return withValue(
      'signature',
      () => `sig=:${Buffer.from(signature, 'base64url').toString('base64')}:`,
    )(sign(READ));
  }),
  attack('format', 'at a route of transcripts alone', () => sign(get('/v1/future'))),
  attack('format', 'the tag in a signature of another', () =>
    withValue('signature-input', (value) => value.replace('sig=', 'cdn=').replace(';tag', ';x="1";tag'))(
      sign(READ),
    ),
  ),
];

const REPLAYS: readonly Attack[] = (
  [
    ['the same request', () => sign(READ)],
    ['its nonce for another request', () => sign(get('/v1/orders/18'))],
    ['its nonce with another label', () => sign(READ, { label: 'sig2' })],
    ['its nonce for the parts of the target', () => sign(READ, { components: [METHOD, ...PARTS] })],
    ['its nonce with a passport of the key', () => withPassport()],
    ['its nonce as the jti of a transcript', () => transcriptRequest('orders-read')],
    ['its nonce as the jti of a DPoP proof', () => dpopRequest()],
    [
      'its nonce with other times',
      () => sign(READ, { params: params({ expires: String(NOW_SECONDS + 90) }) }),
    ],
    ['its nonce for a body', () => sign(WRITE)],
  ] as const
).map(([name, second]) => ({
  binding: 'one use',
  name: `again: ${name}`,
  make: () => [sign(READ), second()],
}));

export const httpSignatureRequest = (): Sent => sign(READ);

/** Requests that are allowed: the attacks differ from them in one thing. */
export const HTTP_SIGNATURE_CONTROLS: readonly Sent[] = [
  sign(READ),
  sign(TENANT),
  sign(WRITE),
  withPassport(),
  withRoute('orders-read'),
];

export const HTTP_SIGNATURE_ATTACKS: readonly Attack[] = [
  ...inTransit(() => sign(READ), [...TARGET_CHANGES, ...QUERY_CHANGES]),
  ...CHANGED_PARAMETERS,
  ...SIGNED_PARAMETERS,
  ...COMPONENTS,
  ...ROUTES,
  ...DIGESTS,
  ...BODIES,
  ...HEADERS,
  ...FIELD_SYNTAX,
  ...SIGNATURES,
  ...PASSPORTS,
  ...AMONG_FORMATS,
  ...REPLAYS,
];
