/** Attacks on requests with DPoP proofs, with a passport and with an access token. */
import { createDpopNonces, DPOP_NONCE_SECONDS } from '../../../../src/protocol/dpop-nonce.ts';
import { signMessage } from '../../../../src/protocol/signature.ts';
import { AUTH_SITE, BROKER_ISSUER, NOW_SECONDS, ORIGIN } from '../../../support/fixtures/bundle-content.ts';
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
import { type DpopSigning, dpopRequest } from './dpop-request.ts';
import { httpSignatureRequest } from './http-signature-attacks.ts';
import { BODY_CHANGES, TARGET_CHANGES } from './in-transit.ts';
import {
  accessToken,
  keys,
  OTHER_TOKEN_ISSUER,
  otherServer,
  passportOf,
  server,
  stranger,
  transcriptRequest,
} from './requests.ts';

const TARGET = 'method, scheme, authority, path';
const ROUTE = 'route, audience, issuer, subject';
const KEY = 'token and key';
const HOST = ORIGIN.slice(8);
const OTHER_PASSPORT = passportOf('billing', 'prices', { claims: { jti: 'another-passport-of-it' } });

const inTransit = (changes: readonly Change[]): readonly Attack[] =>
  changes.map(([binding, name, change]) => attack(binding, name, () => change(dpopRequest())));

const signed = (binding: Binding, name: string, signing: DpopSigning): Attack =>
  attack(binding, name, () => dpopRequest(signing));

const htu = (name: string, url: string) => signed(TARGET, `htu: ${name}`, { url });
const path = '/v1/orders/17';

const HTU: readonly Attack[] = [
  htu('another item', `${ORIGIN}/v1/orders/18`),
  htu('another route', `${ORIGIN}/v1/prices`),
  htu('no path', ORIGIN),
  htu('a slash behind it', `${ORIGIN}${path}/`),
  htu('two slashes', `${ORIGIN}/${path}`),
  htu('a dot segment', `${ORIGIN}/v1/x/..${path.slice(3)}`),
  htu('an escape', `${ORIGIN}/v1/orders/%317`),
  htu('an escaped slash', `${ORIGIN}/v1%2Forders/17`),
  htu('a backslash', `${ORIGIN}/v1\\orders/17`),
  htu('another case', `${ORIGIN}/V1/orders/17`),
  htu('a parameter', `${ORIGIN}${path};a=1`),
  htu('an empty query', `${ORIGIN}${path}?`),
  htu('a fragment', `${ORIGIN}${path}#a`),
  htu('an empty fragment', `${ORIGIN}${path}#`),
  htu('white space before it', ` ${ORIGIN}${path}`),
  htu('white space behind it', `${ORIGIN}${path} `),
  htu('a line feed within', `${ORIGIN}/v1/\norders/17`),
  htu('a null within', `${ORIGIN}/v1/orders/17\0`),
  htu('another scheme', `http://${HOST}${path}`),
  htu('no scheme', `//${HOST}${path}`),
  htu('a scheme of another kind', `urn:${HOST}${path}`),
  htu('one slash', `https:/${HOST}${path}`),
  htu('a path alone', path),
  htu('another host', `https://evil.example${path}`),
  htu('a host behind a user name', `https://${HOST}@evil.example${path}`),
  htu('a user name', `https://user@${HOST}${path}`),
  htu('another port', `${ORIGIN}:8443${path}`),
  htu('the port of http', `${ORIGIN}:80${path}`),
  htu('a port with a zero before it', `${ORIGIN}:0443${path}`),
  htu('a dot behind the host', `${ORIGIN}.${path}`),
  htu('a subdomain', `https://x.${HOST}${path}`),
  htu('an escape in the host', `https://api%2eshop.example${path}`),
  htu('another letter in the host', `https://\u0430pi.shop.example${path}`),
  htu('no host', `https://${path}`),
  htu('another origin of the site', `https://partners.shop.example:8443${path}`),
  signed('query', 'htu: a query', { url: `${ORIGIN}${path}?a=1` }),
  ...[undefined, null, '', 17, [`${ORIGIN}${path}`], { url: `${ORIGIN}${path}` }].map((value) =>
    signed(TARGET, `htu is ${JSON.stringify(value)}`, { claims: { htu: value } }),
  ),
  signed(TARGET, 'htu of 9 KiB', { url: `${ORIGIN}/${'a'.repeat(9000)}` }),
];

const HTM: readonly Attack[] = [
  ...['POST', 'get', 'Get', 'GET ', ' GET', 'G', 'GETT', 'HEAD', '*', ''].map((method) =>
    signed(TARGET, `htm is ${JSON.stringify(method)}`, { claims: { htm: method } }),
  ),
  ...[undefined, null, ['GET'], 1].map((value) =>
    signed(TARGET, `htm is of another type: ${JSON.stringify(value)}`, { claims: { htm: value } }),
  ),
];

/** A route gives it up or refuses it. */
const QUERIES: readonly Attack[] = [
  '?',
  '?a=1',
  '??',
  '?a',
  '?%3F',
  '?=',
  '?&',
  '?a=1#b',
  '?/../18',
  '?\u00e4',
].map((query) => signed('query', `a query: ${query}`, { target: `${path}${query}` }));

const OWN_NONCES = createDpopNonces(AUTH_SITE, [Buffer.alloc(32, 1)]);
/** Of the verifier that is attacked. */
export const DPOP_NONCES = OWN_NONCES;
const NONCE = OWN_NONCES.issue(NOW_SECONDS);

/** Of the route that requires nonces, whose MAC covers the site. */
const withNonce = (nonce: unknown): DpopSigning => ({ method: 'DELETE', claims: { nonce } });
const NONCES: readonly Attack[] = (
  [
    ['none', undefined],
    ['of another site', createDpopNonces('shop-us-1', [Buffer.alloc(32, 1)]).issue(NOW_SECONDS)],
    ['of another key', createDpopNonces(AUTH_SITE, [Buffer.alloc(32, 2)]).issue(NOW_SECONDS)],
    ['old', OWN_NONCES.issue(NOW_SECONDS - DPOP_NONCE_SECONDS)],
    ['of the future', OWN_NONCES.issue(NOW_SECONDS + 6)],
    ['with another time', `B${NONCE.slice(1)}`],
    ['with another MAC', `${NONCE.slice(0, -1)}${NONCE.endsWith('A') ? 'B' : 'A'}`],
    ['truncated', NONCE.slice(0, -2)],
    ['with more behind it', `${NONCE}AA`],
    ['in another case', NONCE.toLowerCase()],
    ['with padding', `${NONCE}==`],
    ['invented', 'A'.repeat(30)],
    ['empty', ''],
    ['a list', [NONCE]],
    ['null', null],
    ['a number', 1],
    ['with a space', 'a b'],
    ['long', 'a'.repeat(300)],
  ] as const
).map(([name, nonce]) => signed('site', `nonce: ${name}`, withNonce(nonce)));

const JTIS: readonly Attack[] = (
  [
    ['short', 'A'.repeat(15)],
    ['long', 'A'.repeat(129)],
    ['empty', ''],
    ['with a space', `${'A'.repeat(16)} `],
    ['with a slash', `${'A'.repeat(16)}/`],
    ['with a plus', `${'A'.repeat(16)}+`],
    ['with a colon', `${'A'.repeat(16)}:`],
    ['with a null', `${'A'.repeat(16)}\0`],
    ['with an umlaut', `${'A'.repeat(16)}\u00e4`],
    ['missing', undefined],
    ['null', null],
    ['a number', 1234567890123456],
    ['a list', ['A'.repeat(20)]],
  ] as const
).map(([name, jti]) => signed('one use', `jti: ${name}`, { claims: { jti } }));

const TIMES: readonly Attack[] = [
  ...(
    [
      ['a minute and more ago', NOW_SECONDS - 66],
      ['to come', NOW_SECONDS + 6],
      ['in milliseconds', NOW_SECONDS * 1000],
      ['zero', 0],
      ['negative', -NOW_SECONDS],
      ['with a fraction', NOW_SECONDS + 0.5],
      ['a string', String(NOW_SECONDS)],
      ['missing', undefined],
      ['null', null],
      ['a list', [NOW_SECONDS]],
      ['beyond exact integers', 2 ** 53],
    ] as const
  ).map(([name, iat]) => signed('time', `iat: ${name}`, { claims: { iat } })),
  signed('time', 'exp', { claims: { exp: NOW_SECONDS + 3600 } }),
  signed('time', 'nbf', { claims: { nbf: NOW_SECONDS } }),
];

/** A proof whose claims are any text, signed by the right key. */
function withClaims(change: (text: string) => string): Sent {
  return rebuilt((header, claims) => [header, change(claims)]);
}

const withHeaderText = (change: (text: string) => string): Sent =>
  rebuilt((header, claims) => [change(header), claims]);

function rebuilt(change: (header: string, claims: string) => readonly [string, string]): Sent {
  return withValue('dpop', (jws) => {
    const [header = '', claims = ''] = jws
      .split('.')
      .map((part) => Buffer.from(part, 'base64url').toString());
    const input = change(header, claims)
      .map((part) => Buffer.from(part).toString('base64url'))
      .join('.');
    const signature = signMessage('Ed25519', keys.billing.privateKey, Buffer.from(input));
    return `${input}.${signature.toString('base64url')}`;
  })(dpopRequest());
}

const own = keys.billing.publicKey.jwk;
const p256 = keys.reporting.publicKey.jwk;

const JOSE_HEADERS: readonly Attack[] = [
  signed('syntax', 'header: b64 false', { header: { b64: false, crit: ['b64'] } }),
  ...(
    [
      [KEY, 'a jwk of another key', { jwk: stranger.publicKey.jwk }],
      [KEY, 'no jwk', { jwk: undefined }],
      [KEY, 'a private jwk', { jwk: { ...own, d: 'A'.repeat(43) } }],
      [KEY, 'a jwk as a string', { jwk: JSON.stringify(own) }],
      [KEY, 'a list of jwks', { jwk: [own] }],
      [KEY, 'a jwk of another curve', { jwk: { ...own, crv: 'X25519' } }],
      [KEY, 'a jwk of another kind', { jwk: { ...own, kty: 'EC' } }],
      [KEY, 'a jwk without x', { jwk: { kty: 'OKP', crv: 'Ed25519' } }],
      [KEY, 'a jwk with a short x', { jwk: { ...own, x: 'AAAA' } }],
      [KEY, 'a jwk with padding', { jwk: { ...own, x: `${own.x}=` } }],
      [KEY, 'a jwk with y', { jwk: { ...own, y: own.x } }],
      [KEY, 'a jwk with certificates', { jwk: { ...own, x5c: ['MIIB'] } }],
      [KEY, 'a jwk with an address', { jwk: { ...own, x5u: 'https://evil.example' } }],
      [KEY, 'a jwk with a secret', { jwk: { kty: 'oct', k: 'AAAA' } }],
      [KEY, 'a jwk of RSA', { jwk: { kty: 'RSA', n: 'AQAB', e: 'AQAB' } }],
      [KEY, 'the point at zero', { jwk: { kty: 'OKP', crv: 'Ed25519', x: 'A'.repeat(43) } }],
      [KEY, 'a P-256 key with EdDSA', { jwk: p256 }],
      [KEY, 'P-521', { alg: 'ES512', jwk: { ...p256, crv: 'P-521' } }],
      [KEY, 'jku', { jku: 'https://evil.example/keys' }],
      [KEY, 'jku in place of jwk', { jwk: undefined, jku: 'https://evil.example/keys' }],
      [KEY, 'x5u', { x5u: 'https://evil.example' }],
      [KEY, 'x5c', { x5c: ['MIIB'] }],
      [KEY, 'x5t#S256', { 'x5t#S256': 'A'.repeat(43) }],
      [KEY, 'kid', { kid: KEY_ID.billing }],
      [KEY, 'kid in place of jwk', { jwk: undefined, kid: KEY_ID.billing }],
      ['syntax', 'crit', { crit: [] }],
      ['syntax', 'crit of an unknown member', { crit: ['exp'] }],
      ['syntax', 'zip', { zip: 'DEF' }],
      ['syntax', 'enc', { enc: 'A256GCM' }],
      ['syntax', 'cty', { cty: 'JWT' }],
      ['syntax', 'a member of no standard', { other: 1 }],
      ['format', 'the type of a JWT', { typ: 'JWT' }],
      ['format', 'the type of an access token', { typ: 'at+jwt' }],
      ['format', 'the type of a passport', { typ: 'proofgate-passport+jwt' }],
      ['format', 'the type in capitals', { typ: 'DPOP+JWT' }],
      ['format', 'the type with its prefix', { typ: 'application/dpop+jwt' }],
      ['format', 'no type', { typ: undefined }],
      ['format', 'a list of types', { typ: ['dpop+jwt'] }],
      ...[
        'none',
        'None',
        '',
        'HS256',
        'RS256',
        'PS256',
        'ES256',
        'ES384',
        'ES256K',
        'Ed448',
        'ed25519',
        'EDDSA',
      ].map((alg) => [KEY, `alg ${JSON.stringify(alg)}`, { alg }] as const),
      [KEY, 'no alg', { alg: undefined }],
      [KEY, 'a list of algs', { alg: ['EdDSA'] }],
    ] as const satisfies readonly (readonly [Binding, string, Readonly<Record<string, unknown>>])[]
  ).map(([binding, name, header]) => signed(binding, `header: ${name}`, { header })),
];

const CLAIMS: readonly Attack[] = [
  ...(
    [
      ['missing', undefined],
      ['null', null],
      ['empty', ''],
      ['short', 'AAAA'],
      ['with padding', `${'A'.repeat(43)}=`],
      ['in base64', `${'A'.repeat(41)}+/`],
      ['in hexadecimal', 'ab'.repeat(32)],
      ['a list', ['A'.repeat(43)]],
      ['of nothing', '47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU'],
    ] as const
  ).map(([name, ath]) => signed(KEY, `ath: ${name}`, { claims: { ath } })),
  signed(KEY, 'ath: of another token of the caller', { provedToken: OTHER_PASSPORT }),
  signed(KEY, "ath: of another caller's token", { provedToken: passportOf('reporting', 'orders-read') }),
  signed(KEY, 'ath: of the token with its scheme', {
    provedToken: `DPoP ${passportOf('billing', 'orders-read')}`,
  }),
  signed(KEY, 'ath: of the token without its signature', {
    provedToken: passportOf('billing', 'orders-read').split('.').slice(0, 2).join('.'),
  }),
];

const JSON_TEXTS: readonly Attack[] = [
  ...(
    [
      ['a claim twice', (text: string) => text.replace('{', '{"htm":"GET",')],
      ['jti twice', (text: string) => text.replace('{', '{"jti":"AAAAAAAAAAAAAAAAAAAAAA",')],
      ['a claim nested', (text: string) => `{"claims":${text}}`],
      ['a list of claims', (text: string) => `[${text}]`],
      ['white space behind them', (text: string) => `${text} x`],
      ['a byte order mark', (text: string) => `\ufeff${text}`],
      ['a comma behind the last', (text: string) => text.replace(/\}$/, ',}')],
      ['a comment', (text: string) => text.replace('{', '{/**/')],
      ['single quotes', (text: string) => text.replaceAll('"', "'")],
      ['nothing', () => ''],
      ['null', () => 'null'],
      ['a string', (text: string) => JSON.stringify(text)],
      ['depth', (text: string) => text.replace('{', `{"a":${'['.repeat(200)}${']'.repeat(200)},`)],
      ['jti in __proto__', (text: string) => text.replace(/"jti":("[^"]+")/, '"__proto__":{"jti":$1}')],
    ] as const
  ).map(([name, change]) => attack('syntax', `claims: ${name}`, () => withClaims(change))),
  ...(
    [
      ['a member twice', (text: string) => text.replace('{', '{"typ":"dpop+jwt",')],
      ['alg twice', (text: string) => text.replace('{', '{"alg":"none",')],
      ['a jwk with a member twice', (text: string) => text.replace('"crv"', '"x":"AAAA","crv"')],
      ['nested', (text: string) => `{"header":${text}}`],
      ['jwk in __proto__', (text: string) => text.replace(/"jwk":(\{[^}]+\})/, '"__proto__":{"jwk":$1}')],
      ['__proto__', (text: string) => text.replace('{', '{"__proto__":{"jku":1},')],
      ['nothing', () => ''],
      ['an array', (text: string) => `[${text}]`],
    ] as const
  ).map(([name, change]) => attack('syntax', `header text: ${name}`, () => withHeaderText(change))),
];

const proof = (binding: Binding, name: string, change: (jws: string) => string): Attack =>
  attack(binding, `proof: ${name}`, () => withValue('dpop', change)(dpopRequest()));

const part = (index: number, change: (text: string) => string) => (jws: string) =>
  jws
    .split('.')
    .map((text, at) => (at === index ? change(text) : text))
    .join('.');

const ENCODINGS: readonly Attack[] = [
  proof(
    KEY,
    'a signature of zeros',
    part(2, () => 'A'.repeat(86)),
  ),
  proof(
    KEY,
    'no signature',
    part(2, () => ''),
  ),
  proof(
    KEY,
    'a shorter signature',
    part(2, (text) => text.slice(0, -4)),
  ),
  proof(
    KEY,
    'a longer signature',
    part(2, (text) => `${text}AAAA`),
  ),
  proof(
    KEY,
    'another bit of the signature',
    part(2, (text) => `${text[0] === 'A' ? 'B' : 'A'}${text.slice(1)}`),
  ),
  proof(
    KEY,
    'stray bits in the signature',
    part(2, (text) => `${text.slice(0, -1)}${text.endsWith('B') ? 'C' : 'B'}`),
  ),
  proof('syntax', 'padding', (jws) => `${jws}==`),
  proof(
    'syntax',
    'base64',
    part(2, () => `+/${'A'.repeat(84)}`),
  ),
  proof('syntax', 'two parts', (jws) => jws.split('.').slice(0, 2).join('.')),
  proof('syntax', 'four parts', (jws) => `${jws}.AAAA`),
  proof('syntax', 'five parts', (jws) => `${jws}.AAAA.AAAA`),
  proof(
    'syntax',
    'an empty header',
    part(0, () => ''),
  ),
  proof(
    'syntax',
    'empty claims',
    part(1, () => ''),
  ),
  proof('syntax', 'white space within', (jws) => jws.replace('.', ' .')),
  proof('syntax', 'quotes', (jws) => `"${jws}"`),
  proof('syntax', 'its JSON serialization', (jws) => {
    const [header, payload, signature] = jws.split('.');
    return JSON.stringify({ protected: header, payload, signature });
  }),
  proof('syntax', 'more than its limit', (jws) => `${jws}${'A'.repeat(9000)}`),
  proof('syntax', 'a null', (jws) => `${jws}\0`),
  proof(
    KEY,
    'claims of another proof',
    part(1, () => valueIn(dpopRequest({ claims: { jti: 'B'.repeat(22) } }), 'dpop').split('.')[1] ?? ''),
  ),
  proof(
    KEY,
    'a header of another proof',
    part(0, () => valueIn(dpopRequest({ key: stranger }), 'dpop').split('.')[0] ?? ''),
  ),
];

const LINES: readonly Attack[] = [
  attack('syntax', 'no proof', () => withoutLine('dpop')(dpopRequest())),
  attack('syntax', 'an empty proof', () => withValue('dpop', () => '')(dpopRequest())),
  attack('syntax', 'the proof on two lines', () => repeated('dpop')(dpopRequest())),
  attack('syntax', 'the proof twice on a line', () =>
    withValue('dpop', (jws) => `${jws}, ${jws}`)(dpopRequest()),
  ),
  attack('syntax', 'an empty second line', () => withLines({ name: 'dpop', value: '' })(dpopRequest())),
  attack('syntax', 'the proof under a name with _', () => renamed('dpop', 'dpop_')(dpopRequest())),
  attack('syntax', 'the proof in Authorization', () =>
    withoutLine('dpop')(
      withValue('authorization', (value) => `${value}, ${valueIn(dpopRequest(), 'dpop')}`)(dpopRequest()),
    ),
  ),
  attack(KEY, 'no token', () => withoutLine('authorization')(dpopRequest())),
  attack(KEY, 'an empty Authorization', () => withValue('authorization', () => '')(dpopRequest())),
  attack(KEY, 'the scheme alone', () => withValue('authorization', () => 'DPoP')(dpopRequest())),
  attack(KEY, 'the token alone', () => withValue('authorization', (value) => value.slice(5))(dpopRequest())),
  attack(KEY, 'the token twice', () => repeated('authorization')(dpopRequest())),
  attack(KEY, 'two tokens on a line', () =>
    withValue('authorization', (value) => `${value}, ${value}`)(dpopRequest()),
  ),
  attack(KEY, 'a second token', () =>
    withLines({ name: 'authorization', value: `DPoP ${passportOf('reporting', 'orders-read')}` })(
      dpopRequest(),
    ),
  ),
  attack(KEY, 'a tab behind the scheme', () =>
    withValue('authorization', (value) => value.replace(' ', '\t'))(dpopRequest()),
  ),
  attack(KEY, 'the token in quotes', () =>
    withValue('authorization', (value) => value.replace(/ (.*)/, ' "$1"'))(dpopRequest()),
  ),
  attack(KEY, 'the token in another header', () =>
    renamed('authorization', 'x-proofgate-passport')(dpopRequest()),
  ),
  attack(KEY, 'the token in Proxy-Authorization', () =>
    renamed('authorization', 'proxy-authorization')(dpopRequest()),
  ),
];

const AMONG_FORMATS: readonly Attack[] = [
  ...['Bearer', 'bearer', 'Passport', 'Basic', 'GNAP', 'DPoP2'].map((scheme) =>
    signed('format', `the token as ${scheme}`, { scheme }),
  ),
  attack('format', 'the token as a bearer, without a proof', () =>
    withoutLine('dpop')(dpopRequest({ scheme: 'Bearer' })),
  ),
  attack('format', 'a bearer before the token', () =>
    withValue('authorization', (value) => `Bearer x, ${value}`)(dpopRequest()),
  ),
  attack('format', 'a bearer on another line', () =>
    withLines({ name: 'authorization', value: 'Bearer x' })(dpopRequest()),
  ),
  attack('format', 'a passport on another line', () =>
    withLines({ name: 'authorization', value: `Passport ${passportOf('billing', 'orders-read')}` })(
      dpopRequest(),
    ),
  ),
  attack('format', 'a transcript beside it', () =>
    withLines(...transcriptRequest('orders-read').lines.filter(({ name }) => name !== 'authorization'))(
      dpopRequest(),
    ),
  ),
  attack('format', 'half a transcript beside it', () =>
    withLines({ name: 'x-proofgate-signature', value: 'x' })(dpopRequest()),
  ),
  attack('format', 'an HTTP message signature beside it', () =>
    withLines(...httpSignatureRequest().lines)(dpopRequest()),
  ),
  attack('format', 'a malformed signature for the site beside it', () =>
    withLines({ name: 'signature-input', value: `x;tag="proofgate/shop-eu-1"` })(dpopRequest()),
  ),
  attack('format', 'the token as the proof', () =>
    withValue('dpop', () => passportOf('billing', 'orders-read'))(dpopRequest()),
  ),
  attack('format', 'the proof as the token', () => {
    const sent = dpopRequest();
    return withValue('authorization', () => `DPoP ${valueIn(sent, 'dpop')}`)(sent);
  }),
  attack('format', 'the token and the proof exchanged', () => {
    const sent = dpopRequest();
    const token = valueIn(sent, 'authorization').slice(5);
    return withValue(
      'dpop',
      () => token,
    )(withValue('authorization', () => `DPoP ${valueIn(sent, 'dpop')}`)(sent));
  }),
  attack('format', 'the proof as a transcript', () => {
    const sent = dpopRequest();
    const [header = '', claims = '', signature = ''] = valueIn(sent, 'dpop').split('.');
    const text = Buffer.from(`${header}.${claims}`).toString('base64url');
    return withoutLine('dpop')({
      ...sent,
      lines: [
        { name: 'authorization', value: `Passport ${passportOf('billing', 'orders-read')}` },
        { name: 'x-proofgate-transcript', value: text },
        { name: 'x-proofgate-signature', value: signature },
      ],
    });
  }),
  attack('format', "a transcript's signature as the proof's", () => {
    const signature = valueIn(transcriptRequest('orders-read'), 'x-proofgate-signature');
    return withValue(
      'dpop',
      part(2, () => signature),
    )(dpopRequest());
  }),
  attack('format', 'the token nested in a JWT', () => {
    const nested = Buffer.from(passportOf('billing', 'orders-read')).toString('base64url');
    return withValue('authorization', (value) => value.replace(/\.[^.]+\./, `.${nested}.`))(dpopRequest());
  }),
  signed('format', 'at a route of transcripts alone', { target: '/v1/future' }),
];

const BODIES: readonly Attack[] = BODY_CHANGES.filter(([, , change]) => {
  const { body } = change(dpopRequest());
  return !(body.kind === 'none' || (body.kind === 'exact' && body.bytes.length === 0));
}).map(([binding, name, change]) => attack(binding, name, () => change(dpopRequest())));

const passport = (binding: Binding, name: string, token: () => string, key = keys.billing): Attack =>
  attack(binding, `passport: ${name}`, () => dpopRequest({ token: token(), key }));

const PASSPORTS: readonly Attack[] = [
  signed(KEY, "another key's proof", { key: stranger }),
  signed(KEY, "another caller's proof", { key: keys.reporting }),
  signed(KEY, "another key's signature", { signer: stranger }),
  passport(KEY, 'of another caller', () => passportOf('reporting', 'orders-read')),
  passport(KEY, 'of a stranger', () => passportOf('billing', 'orders-read', { passportKey: stranger })),
  passport(KEY, 'of a revoked key', () => passportOf('revoked', 'orders-read'), keys.revoked),
  passport(KEY, "of one issuer with another's key", () =>
    passportOf('broker', 'orders-read', { passportKey: keys.automation, holder: keys.billing }),
  ),
  passport(KEY, "of one issuer under another's kid", () =>
    passportOf('broker', 'orders-read', { kid: KEY_ID.automation, holder: keys.billing }),
  ),
  passport(KEY, 'of an unknown kid', () => passportOf('billing', 'orders-read', { kid: 'dk_unknown' })),
  passport(KEY, 'with jku', () =>
    passportOf('billing', 'orders-read', { header: { jku: 'https://evil.example' } }),
  ),
  passport(KEY, 'without an algorithm', () =>
    passportOf('billing', 'orders-read', { header: { alg: 'none' } }),
  ),
  passport(KEY, 'of the type of an access token', () =>
    passportOf('billing', 'orders-read', { header: { typ: 'at+jwt' } }),
  ),
  passport(KEY, 'with jkt in place of its key', () =>
    passportOf('billing', 'orders-read', { claims: { cnf: { jkt: keys.billing.publicKey.thumbprint } } }),
  ),
  passport(KEY, 'with both', () =>
    passportOf('billing', 'orders-read', {
      claims: { cnf: { jwk: own, jkt: keys.billing.publicKey.thumbprint } },
    }),
  ),
  passport(ROUTE, 'for another audience', () =>
    passportOf('billing', 'orders-read', { claims: { aud: 'urn:x' } }),
  ),
  passport(ROUTE, 'of another subject', () =>
    passportOf('billing', 'orders-read', { claims: { sub: 'client:reporting' } }),
  ),
  passport(ROUTE, 'of another issuer', () =>
    passportOf('billing', 'orders-read', { claims: { iss: BROKER_ISSUER } }),
  ),
  passport(ROUTE, 'of another trust domain', () =>
    passportOf('billing', 'orders-read', { claims: { trust_domain: 'evil.example' } }),
  ),
  passport('time', 'expired', () =>
    passportOf('billing', 'orders-read', { claims: { iat: NOW_SECONDS - 600, exp: NOW_SECONDS - 300 } }),
  ),
  passport('time', 'for too long', () =>
    passportOf('billing', 'orders-read', { claims: { exp: NOW_SECONDS + 301 } }),
  ),
  signed(ROUTE, 'a route without a grant', {
    ...{ method: 'POST', target: '/v1/orders', key: keys.reporting },
    token: passportOf('reporting', 'orders-write'),
  }),
];

const token = (binding: Binding, name: string, make: () => string): Attack =>
  attack(binding, `access token: ${name}`, () => dpopRequest({ token: make() }));

const jkt = keys.billing.publicKey.thumbprint;
const ACCESS_TOKENS: readonly Attack[] = [
  ...(
    [
      [KEY, 'no cnf', { cnf: undefined }],
      [KEY, 'an empty cnf', { cnf: {} }],
      [KEY, 'cnf of another key', { cnf: { jkt: stranger.publicKey.thumbprint } }],
      [KEY, 'cnf with a certificate beside it', { cnf: { jkt, 'x5t#S256': 'A'.repeat(43) } }],
      [KEY, 'cnf with a key in place of jkt', { cnf: { jwk: own } }],
      [KEY, 'cnf as a string', { cnf: jkt }],
      [KEY, 'jkt outside cnf', { cnf: undefined, jkt }],
      [KEY, 'jkt in another case', { cnf: { jkt: jkt.toUpperCase() } }],
      [KEY, 'jkt with padding', { cnf: { jkt: `${jkt}=` } }],
      [KEY, 'a list of jkt', { cnf: { jkt: [jkt] } }],
      [ROUTE, 'another issuer', { iss: 'https://evil.example' }],
      [ROUTE, "another server's issuer", { iss: OTHER_TOKEN_ISSUER }],
      [ROUTE, "a broker's issuer", { iss: BROKER_ISSUER }],
      [ROUTE, 'the issuer with a slash', { iss: 'https://login.shop.example/realms/shop/' }],
      [ROUTE, 'no issuer', { iss: undefined }],
      [ROUTE, 'another audience', { aud: 'account' }],
      [ROUTE, 'no audience', { aud: undefined }],
      [ROUTE, 'an empty list of audiences', { aud: [] }],
      [ROUTE, 'a list within the audience', { aud: [[ORIGIN]] }],
      [ROUTE, '17 audiences', { aud: [...Array.from({ length: 16 }, (_, n) => `a${n}`), ORIGIN] }],
      [ROUTE, 'the audience with a slash', { aud: `${ORIGIN}/` }],
      [ROUTE, 'another subject', { sub: 'billing' }],
      [ROUTE, 'no subject', { sub: undefined }],
      [ROUTE, 'a list of subjects', { sub: ['orders'] }],
      [ROUTE, 'the subject of a client', { sub: 'client:billing' }],
      ['time', 'expired', { iat: NOW_SECONDS - 400, exp: NOW_SECONDS - 100 }],
      ['time', 'for too long', { exp: NOW_SECONDS + 301 }],
      ['time', 'to come', { iat: NOW_SECONDS + 6, exp: NOW_SECONDS + 60 }],
      ['time', 'not before later', { nbf: NOW_SECONDS + 6 }],
      ['time', 'no end', { exp: undefined }],
      ['time', 'no start', { iat: undefined }],
      ['time', 'a string as its end', { exp: String(NOW_SECONDS + 300) }],
      ['time', 'of before the issuer started anew', { iat: NOW_SECONDS - 1001, exp: NOW_SECONDS - 720 }],
    ] as const satisfies readonly (readonly [Binding, string, object])[]
  ).map(([binding, name, claims]) => token(binding, name, () => accessToken(claims))),
  ...(
    [
      ['an ID token', { typ: 'JWT' }],
      ['a passport', { typ: 'proofgate-passport+jwt' }],
      ['a proof', { typ: 'dpop+jwt' }],
      ['no type', { typ: undefined }],
      ['jku', { jku: 'https://evil.example' }],
      ['x5u', { x5u: 'https://evil.example' }],
      ['jwk', { jwk: stranger.publicKey.jwk }],
      ['crit', { crit: ['b64'], b64: false }],
      ['no alg', { alg: undefined }],
      ['alg none', { alg: 'none' }],
      ['alg of a secret', { alg: 'HS256' }],
      ['alg of another key', { alg: 'RS256' }],
      ['an unknown kid', { kid: 'unknown' }],
      ['no kid', { kid: undefined }],
      ['the kid of a broker', { kid: KEY_ID.broker }],
      ['the key_id of a client', { kid: KEY_ID.billing }],
      ['the kid of another server', { kid: otherServer.kid }],
    ] as const
  ).map(([name, header]) => token(KEY, `header: ${name}`, () => accessToken({}, header))),
  token(KEY, "another server's key", () => accessToken({}, {}, otherServer)),
  token(KEY, "another server's key under our kid", () => accessToken({}, { kid: server.kid }, otherServer)),
  token(KEY, 'a forged signature', () => accessToken().replace(/[^.]+$/, 'A'.repeat(86))),
  token(KEY, 'no signature', () => accessToken().replace(/[^.]+$/, '')),
  token('format', 'encrypted, five parts', () => `${accessToken()}.AAAA.AAAA`),
  token('format', 'opaque', () => '2YotnFZFEjr1zCsicMWpAA'),
  attack('format', 'access token: as a bearer', () =>
    dpopRequest({ token: accessToken(), scheme: 'Bearer' }),
  ),
  attack('format', 'access token: as a passport', () =>
    dpopRequest({ token: accessToken(), scheme: 'Passport' }),
  ),
  attack('format', 'access token: in a transcript', () =>
    withValue('authorization', () => `Passport ${accessToken()}`)(transcriptRequest('orders-read')),
  ),
  attack('format', 'access token: with an HTTP message signature', () =>
    withLines({ name: 'authorization', value: `Passport ${accessToken()}` })(httpSignatureRequest()),
  ),
  attack(KEY, 'access token: with the proof for a passport', () =>
    dpopRequest({ token: accessToken(), provedToken: passportOf('billing', 'orders-read') }),
  ),
  attack(ROUTE, 'access token: where callers are attested', () =>
    dpopRequest({ token: accessToken(), target: '/v1/attested' }),
  ),
];

const REPLAYS: readonly Attack[] = (
  [
    ['the same request', () => dpopRequest()],
    ['its jti for another path', () => dpopRequest({ target: '/v1/orders/18' })],
    ['its jti for another route', () => dpopRequest({ target: '/v1/prices', token: OTHER_PASSPORT })],
    ['its jti with another passport', () => dpopRequest({ token: OTHER_PASSPORT })],
    ['its jti with an access token', () => dpopRequest({ token: accessToken() })],
    ['its jti a second later', () => dpopRequest({ claims: { iat: NOW_SECONDS + 1 } })],
    ['its jti with alg EdDSA', () => dpopRequest({ header: { alg: 'EdDSA' } })],
    ['its jti with a nonce', () => dpopRequest({ claims: { nonce: 'abc' } })],
    ['its jti as the jti of a transcript', () => transcriptRequest('orders-read')],
    ['its jti as the nonce of a signature', () => httpSignatureRequest()],
  ] as const
).map(([name, second]) => ({
  binding: 'one use',
  name: `again: ${name}`,
  make: () => [dpopRequest(), second()],
}));

/** Requests that are allowed: the attacks differ from them in one thing. */
export const DPOP_CONTROLS: readonly Sent[] = [
  dpopRequest(),
  dpopRequest({ token: accessToken() }),
  dpopRequest(withNonce(NONCE)),
];

export const DPOP_ATTACKS: readonly Attack[] = [
  ...inTransit(TARGET_CHANGES),
  ...HTM,
  ...HTU,
  ...QUERIES,
  ...NONCES,
  ...BODIES,
  ...JTIS,
  ...TIMES,
  ...JOSE_HEADERS,
  ...CLAIMS,
  ...JSON_TEXTS,
  ...ENCODINGS,
  ...LINES,
  ...AMONG_FORMATS,
  ...PASSPORTS,
  ...ACCESS_TOKENS,
  ...REPLAYS,
];
