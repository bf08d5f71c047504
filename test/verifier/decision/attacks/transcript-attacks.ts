/** Attacks on requests with transcripts. */
import { signMessage } from '../../../../src/protocol/signature.ts';
import { NOW_SECONDS, ORIGIN } from '../../../support/fixtures/bundle-content.ts';
import type { RequestEdits } from '../../../support/fixtures/signed-request.ts';
import { KEY_ID, type RouteId } from '../../../support/fixtures/snapshot.ts';
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
import { httpSignatureRequest } from './http-signature-attacks.ts';
import { BODY_CHANGES, HEADER_CHANGES, QUERY_CHANGES, TARGET_CHANGES } from './in-transit.ts';
import { accessToken, keys, passportOf, stranger, transcriptRequest } from './requests.ts';

const TRANSCRIPT = 'x-proofgate-transcript';
const SIGNATURE = 'x-proofgate-signature';
const TARGET = 'method, scheme, authority, path';
const ROUTE = 'route, audience, issuer, subject';
const KEY = 'token and key';

const textOf = (header: string) => Buffer.from(header, 'base64url').toString('latin1');
const headerOf = (text: string) => Buffer.from(text, 'latin1').toString('base64url');

const inTransit = (route: RouteId, changes: readonly Change[]): readonly Attack[] =>
  changes.map(([binding, name, change]) =>
    attack(binding, name, () => {
      const sent = transcriptRequest(route);
      const changed = change(sent);
      if (JSON.stringify(changed) === JSON.stringify(sent)) throw new Error(`${name} changes nothing`);
      return changed;
    }),
  );

const BINDING_OF_LINE: { readonly [line: string]: Binding } = {
  'auth-site': 'site',
  'key-id': KEY,
  'passport-sha256': KEY,
  issuer: ROUTE,
  subject: ROUTE,
  audience: ROUTE,
  'route-id': ROUTE,
  method: TARGET,
  scheme: TARGET,
  authority: TARGET,
  target: TARGET,
  jti: 'one use',
  'issued-at': 'time',
  'expires-at': 'time',
  'content-sha256': 'body',
};

interface Line {
  readonly name: string;
  readonly value: string;
}

type LineChange = (line: Line, lines: readonly string[], at: number) => readonly string[];

const replacedBy = (lines: readonly string[], at: number, ...more: readonly string[]) => [
  ...lines.slice(0, at),
  ...more,
  ...lines.slice(at + 1),
];

/** Manners in which one line of the transcript departs, in texts that the right key signs or that are changed on the way. */
const MANNERS: { readonly [manner: string]: LineChange } = {
  'with more behind it': ({ name, value }, lines, at) => replacedBy(lines, at, `${name}=${value}0`),
  empty: ({ name }, lines, at) => replacedBy(lines, at, `${name}=`),
  absent: (_, lines, at) => replacedBy(lines, at),
  twice: (_, lines, at) => replacedBy(lines, at, lines[at] ?? '', lines[at] ?? ''),
  'in another place': (_, lines, at) => {
    const others = replacedBy(lines, at);
    const to = at + 1 < lines.length ? at + 1 : at - 1;
    return [...others.slice(0, to), lines[at] ?? '', ...others.slice(to)];
  },
  'in capitals': ({ name, value }, lines, at) => replacedBy(lines, at, `${name}=${value.toUpperCase()}`),
  'with its name in capitals': ({ name, value }, lines, at) =>
    replacedBy(lines, at, `${name.toUpperCase()}=${value}`),
  'with white space before it': ({ name, value }, lines, at) => replacedBy(lines, at, `${name}= ${value}`),
  'with CR': ({ name, value }, lines, at) => replacedBy(lines, at, `${name}=${value}\r`),
  'with a null': ({ name, value }, lines, at) => replacedBy(lines, at, `${name}=${value}\0`),
  'in quotes': ({ name, value }, lines, at) => replacedBy(lines, at, `${name}="${value}"`),
};

function changedLines(change: LineChange, wanted: string): (text: string) => string {
  return (text) => {
    const lines = text.split('\n');
    const at = lines.findIndex((line) => line.startsWith(`${wanted}=`));
    if (at === -1) throw new Error(`no line ${wanted}`);
    const value = (lines[at] ?? '').slice(wanted.length + 1);
    return change({ name: wanted, value }, lines, at).join('\n');
  };
}

/** The line stays the same in capitals, or is another good one: any `jti` is. */
const isGood = (name: string, manner: string) =>
  name === 'jti'
    ? ['in capitals', 'with more behind it'].includes(manner)
    : manner === 'in capitals' && ['issued-at', 'expires-at', 'content-sha256', 'method'].includes(name);

const TRANSCRIPT_LINES: readonly Attack[] = Object.entries(BINDING_OF_LINE).flatMap(([name, binding]) => [
  ...Object.entries(MANNERS)
    .filter(([manner]) => !isGood(name, manner))
    .map(([manner, change]) =>
      attack(binding, `${name} signed ${manner}`, () =>
        transcriptRequest('orders-read', { transcriptText: changedLines(change, name) }),
      ),
    ),
  attack(binding, `${name} changed on the way`, () =>
    withValue(TRANSCRIPT, (header) =>
      headerOf(
        changedLines(
          ({ name: key, value }, lines, at) => replacedBy(lines, at, `${key}=${otherValue(key, value)}`),
          name,
        )(textOf(header)),
      ),
    )(transcriptRequest('orders-read')),
  ),
]);

/** Another well-formed value. */
function otherValue(name: string, value: string): string {
  if (name === 'content-sha256') return 'A'.repeat(43);
  if (name === 'method') return 'DELETE';
  if (name === 'scheme') return 'http';
  if (name.endsWith('-at')) return String(Number(value) + 1);
  return /[a-z]$/i.test(value) ? `${value.slice(0, -1)}${value.endsWith('A') ? 'Q' : 'A'}` : `${value}0`;
}

const signed = (
  binding: Binding,
  name: string,
  edits: RequestEdits,
  route: RouteId = 'orders-read',
): Attack => attack(binding, name, () => transcriptRequest(route, edits));

const draft = (binding: Binding, name: string, change: object): Attack =>
  signed(binding, `signed for ${name}`, { transcript: (text) => void Object.assign(text, change) });

/** Well-formed transcripts of the right key for something else. */
const OTHERWISE: readonly Attack[] = [
  draft('site', 'another site', { authSite: 'shop-us-1' }),
  draft(ROUTE, 'another route', { routeId: 'prices' }),
  draft(ROUTE, 'another audience', { audience: 'https://other.shop.example' }),
  draft(ROUTE, 'another issuer', { issuer: 'https://other.shop.example' }),
  draft(ROUTE, 'another subject', { subject: 'client:reporting' }),
  draft(KEY, 'another key', { keyId: KEY_ID.reporting }),
  draft(KEY, 'another passport', { passportSha256: 'A'.repeat(43) }),
  draft(TARGET, 'another method', { method: 'DELETE' }),
  draft(TARGET, 'another scheme', { scheme: 'http' }),
  draft(TARGET, 'another authority', { authority: 'partners.shop.example:8443' }),
  draft(TARGET, 'another path', { target: '/v1/orders/18?fields=id&fields=total' }),
  draft('query', 'another query', { target: '/v1/orders/17?fields=total&fields=id' }),
  draft('query', 'no query', { target: '/v1/orders/17' }),
  draft('body', 'a body', { contentSha256: 'A'.repeat(43) }),
  draft('headers', 'a header that is not there', { headers: [{ name: 'x-other', value: 'a' }] }),
  draft('time', '301 seconds', { expiresAtSeconds: NOW_SECONDS + 301 }),
  draft('time', 'no second', { expiresAtSeconds: NOW_SECONDS }),
  draft('time', 'an end before its start', { expiresAtSeconds: NOW_SECONDS - 1 }),
  draft('time', 'later', { issuedAtSeconds: NOW_SECONDS + 6, expiresAtSeconds: NOW_SECONDS + 66 }),
  draft('time', 'a time long ago', { issuedAtSeconds: NOW_SECONDS - 66, expiresAtSeconds: NOW_SECONDS - 6 }),
  signed('syntax', 'another version', {
    transcriptText: (text) => text.replace('transcript-v1', 'transcript-v2'),
  }),
  signed('syntax', 'no version', { transcriptText: (text) => text.replace('transcript-v1\n', '') }),
  signed('syntax', 'the version twice', { transcriptText: (text) => `transcript-v1\n${text}` }),
  signed('syntax', 'a line before the version', { transcriptText: (text) => `\n${text}` }),
  signed('syntax', 'no line feed at its end', { transcriptText: (text) => text.replace(/\n$/, '') }),
  signed('syntax', 'two line feeds at its end', { transcriptText: (text) => `${text}\n` }),
  signed('syntax', 'CRLF', { transcriptText: (text) => text.replaceAll('\n', '\r\n') }),
  signed('syntax', 'a byte order mark', { transcriptText: (text) => `\u00ef\u00bb\u00bf${text}` }),
  signed('syntax', 'a line more', { transcriptText: (text) => `${text}admin=1\n` }),
  signed('syntax', 'a header line without a value', { transcriptText: (text) => `${text}header.x-a\n` }),
  signed('syntax', 'nothing', { transcriptText: () => '' }),
  signed('syntax', 'JSON', { transcriptText: () => '{"auth-site":"shop-eu-1"}' }),
];

const field = (binding: Binding, name: string, change: (sent: Sent) => Sent): Attack =>
  attack(binding, name, () => change(transcriptRequest('orders-read')));

const PROOF_HEADERS: readonly Attack[] = [TRANSCRIPT, SIGNATURE].flatMap((name) => [
  field('syntax', `${name} removed`, withoutLine(name)),
  field(
    'syntax',
    `${name} empty`,
    withValue(name, () => ''),
  ),
  field('syntax', `${name} on two lines`, repeated(name)),
  field(
    'syntax',
    `${name} twice on a line`,
    withValue(name, (value) => `${value}, ${value}`),
  ),
  field(
    'syntax',
    `${name} with padding`,
    withValue(name, (value) => `${value}=`),
  ),
  field(
    'syntax',
    `${name} in base64`,
    withValue(name, (value) => `+/${value.slice(2)}`),
  ),
  field(
    'syntax',
    `${name} in hexadecimal`,
    withValue(name, (value) => Buffer.from(value, 'base64url').toString('hex')),
  ),
  field(
    'syntax',
    `${name} with white space within`,
    withValue(name, (value) => `${value.slice(0, 8)} ${value.slice(8)}`),
  ),
  field(
    'syntax',
    `${name} truncated`,
    withValue(name, (value) => value.slice(0, -4)),
  ),
  field(
    'syntax',
    `${name} of more than 8 KiB`,
    withValue(name, () => 'A'.repeat(8196)),
  ),
  field('syntax', `${name} under a name with _`, renamed(name, name.replaceAll('-', '_'))),
  field(
    'syntax',
    `${name} in quotes`,
    withValue(name, (value) => `"${value}"`),
  ),
]);

const SIGNATURES: readonly Attack[] = [
  field(
    KEY,
    'a signature of zeros',
    withValue(SIGNATURE, () => 'A'.repeat(86)),
  ),
  field(
    KEY,
    'a shorter signature',
    withValue(SIGNATURE, () => 'A'.repeat(84)),
  ),
  field(
    KEY,
    'a longer signature',
    withValue(SIGNATURE, () => 'A'.repeat(88)),
  ),
  field(
    KEY,
    'another bit of the signature',
    withValue(SIGNATURE, (value) => `${value[0] === 'A' ? 'B' : 'A'}${value.slice(1)}`),
  ),
  signed(KEY, 'by the key of another client', { proofKey: keys.reporting }),
  signed(KEY, 'by a key of no client', { proofKey: stranger }),
  field(KEY, 'the signature of another request', (sent) =>
    withValue(SIGNATURE, () => valueIn(transcriptRequest('prices'), SIGNATURE))(sent),
  ),
  field(KEY, 'the transcript of another request', (sent) =>
    withValue(TRANSCRIPT, () => valueIn(transcriptRequest('prices'), TRANSCRIPT))(sent),
  ),
  field(KEY, 'both of another request', (sent) =>
    [TRANSCRIPT, SIGNATURE].reduce(
      (changed, name) => withValue(name, () => valueIn(transcriptRequest('prices'), name))(changed),
      sent,
    ),
  ),
];

const passport = (binding: Binding, name: string, edits: RequestEdits): Attack =>
  signed(binding, `passport: ${name}`, edits);
const claims = (binding: Binding, name: string, change: object): Attack =>
  passport(binding, name, { claims: (members) => void Object.assign(members, change) });

const PASSPORTS: readonly Attack[] = [
  field(KEY, 'no passport', withoutLine('authorization')),
  field(
    KEY,
    'an empty Authorization',
    withValue('authorization', () => ''),
  ),
  field(KEY, 'the passport twice', repeated('authorization')),
  field(
    KEY,
    'two passports on a line',
    withValue('authorization', (value) => `${value}, ${value}`),
  ),
  field(
    KEY,
    'the passport without its scheme',
    withValue('authorization', (value) => value.slice(9)),
  ),
  field(KEY, 'the passport in another header', renamed('authorization', 'x-proofgate-passport')),
  field(
    KEY,
    'another passport of the caller',
    withValue(
      'authorization',
      () => `Passport ${passportOf('billing', 'prices', { claims: { jti: 'another-passport-of-it' } })}`,
    ),
  ),
  field(
    KEY,
    "another caller's passport",
    withValue('authorization', () => `Passport ${passportOf('reporting', 'orders-read')}`),
  ),
  passport(KEY, 'of a stranger', { passportKey: stranger }),
  passport(KEY, 'without an algorithm', {
    joseHeader: (header) => void Object.assign(header, { alg: 'none' }),
  }),
  passport(KEY, 'with jku', {
    joseHeader: (header) => void Object.assign(header, { jku: 'https://evil.example' }),
  }),
  passport(KEY, 'with jwk', {
    joseHeader: (header) => void Object.assign(header, { jwk: stranger.publicKey.jwk }),
  }),
  passport(KEY, 'with crit', { joseHeader: (header) => void Object.assign(header, { crit: ['b64'] }) }),
  passport(KEY, 'of an unknown kid', {
    joseHeader: (header) => void Object.assign(header, { kid: 'dk_unknown' }),
  }),
  passport(KEY, "under another client's kid", {
    joseHeader: (header) => void Object.assign(header, { kid: KEY_ID.reporting }),
  }),
  passport(KEY, "under a broker's kid", {
    joseHeader: (header) => void Object.assign(header, { kid: KEY_ID.broker }),
  }),
  passport(KEY, 'of another type', { joseHeader: (header) => void Object.assign(header, { typ: 'at+jwt' }) }),
  claims(KEY, 'of another holder', { cnf: { jwk: stranger.publicKey.jwk } }),
  claims(KEY, 'of no holder', { cnf: undefined }),
  claims(KEY, 'with a thumbprint as holder', { cnf: { jkt: keys.billing.publicKey.thumbprint } }),
  claims(KEY, 'that claims to be attested', { key_binding: 'attested_workload' }),
  claims(ROUTE, 'for another audience', { aud: 'https://other.shop.example' }),
  claims(ROUTE, 'for a list of audiences', { aud: [ORIGIN] }),
  claims(ROUTE, 'of another issuer', { iss: 'https://evil.example' }),
  claims(ROUTE, 'of another subject', { sub: 'client:reporting' }),
  claims(ROUTE, 'of another trust domain', { trust_domain: 'evil.example' }),
  claims(ROUTE, 'of another context', { context: { team: 'other' } }),
  claims('time', 'expired', { iat: NOW_SECONDS - 600, exp: NOW_SECONDS - 300 }),
  claims('time', 'to come', { iat: NOW_SECONDS + 60, exp: NOW_SECONDS + 300 }),
  claims('time', 'for too long', { exp: NOW_SECONDS + 301 }),
];

const HEADERS: readonly Attack[] = [
  ...inTransit('tenants', HEADER_CHANGES),
  ...['x-tenant', 'accept'].flatMap((name) => [
    attack('headers', `${name} removed`, () => withoutLine(name)(transcriptRequest('tenants'))),
    attack('headers', `${name} on two lines`, () => repeated(name)(transcriptRequest('tenants'))),
    attack('headers', `${name} moved to another name`, () =>
      renamed(name, `${name}-2`)(transcriptRequest('tenants')),
    ),
    signed(
      'headers',
      `${name} is not signed`,
      {
        transcript: (text) =>
          void Object.assign(text, { headers: text.headers.filter((one) => one.name !== name) }),
      },
      'tenants',
    ),
  ]),
];

const AMONG_FORMATS: readonly Attack[] = [
  ...['DPoP', 'Bearer', 'Basic'].map((scheme) =>
    field(
      'format',
      `the passport as ${scheme}`,
      withValue('authorization', (value) => value.replace('Passport', scheme)),
    ),
  ),
  field('format', 'an HTTP message signature beside it', (sent) =>
    withLines(...httpSignatureRequest().lines)(sent),
  ),
  field(
    'format',
    'a malformed signature for the site beside it',
    withLines({ name: 'signature-input', value: 'x;tag="proofgate/shop-eu-1"' }),
  ),
  field('format', 'a DPoP proof beside it', (sent) =>
    withLines({ name: 'dpop', value: valueIn(dpopRequest(), 'dpop') })(sent),
  ),
  field('format', 'an empty DPoP header beside it', withLines({ name: 'dpop', value: '' })),
  field('format', 'a DPoP token on another line', (sent) =>
    withLines({ name: 'authorization', value: valueIn(dpopRequest(), 'authorization') })(sent),
  ),
  field(
    'format',
    'an access token as the passport',
    withValue('authorization', () => `Passport ${accessToken()}`),
  ),
  field('format', 'a DPoP proof as the passport', (sent) =>
    withValue('authorization', () => `Passport ${valueIn(dpopRequest(), 'dpop')}`)(sent),
  ),
  field('format', "an HTTP message signature's value as its signature", (sent) => {
    const value = valueIn(httpSignatureRequest(), 'signature').slice(5, -1);
    return withValue(SIGNATURE, () => Buffer.from(value, 'base64').toString('base64url'))(sent);
  }),
  field('format', 'a signature base in its place', (sent) =>
    signedText(sent, '"@method": GET\n"@target-uri": https://api.shop.example/'),
  ),
  field('format', 'a JWS input in its place', (sent) =>
    signedText(sent, valueIn(dpopRequest(), 'dpop').split('.').slice(0, 2).join('.')),
  ),
  field('format', 'a passport input in its place', (sent) =>
    signedText(sent, passportOf('billing', 'orders-read').split('.').slice(0, 2).join('.')),
  ),
];

/** Any text with the caller's valid signature, as a transcript. */
function signedText(sent: Sent, text: string): Sent {
  const signature = signMessage('Ed25519', keys.billing.privateKey, Buffer.from(text, 'latin1'));
  return withValue(SIGNATURE, () => signature.toString('base64url'))(
    withValue(TRANSCRIPT, () => headerOf(text))(sent),
  );
}

const REPLAYS: readonly Attack[] = (
  [
    ['the same request', () => transcriptRequest('orders-read')],
    ['its jti for another route', () => transcriptRequest('prices')],
    ['its jti for a body', () => transcriptRequest('orders-write')],
    [
      'its jti with another end',
      () =>
        transcriptRequest('orders-read', {
          transcript: (text) => void Object.assign(text, { expiresAtSeconds: NOW_SECONDS + 90 }),
        }),
    ],
    [
      'its jti with another passport',
      () =>
        transcriptRequest('orders-read', {
          claims: (members) => void Object.assign(members, { jti: 'another-passport-jti-000' }),
        }),
    ],
    ['its jti as the nonce of a signature', () => httpSignatureRequest()],
    ['its jti as the jti of a DPoP proof', () => dpopRequest()],
  ] as const
).map(([name, second]) => ({
  binding: 'one use',
  name: `again: ${name}`,
  make: () => [transcriptRequest('orders-read'), second()],
}));

/** Requests that are allowed: the attacks differ from them in one thing. */
export const TRANSCRIPT_CONTROLS: readonly Sent[] = [
  transcriptRequest('orders-read'),
  transcriptRequest('orders-write'),
  transcriptRequest('tenants'),
];

export const TRANSCRIPT_ATTACKS: readonly Attack[] = [
  ...inTransit('orders-read', [...TARGET_CHANGES, ...QUERY_CHANGES]),
  ...inTransit('orders-write', BODY_CHANGES),
  ...HEADERS,
  ...TRANSCRIPT_LINES,
  ...OTHERWISE,
  ...PROOF_HEADERS,
  ...SIGNATURES,
  ...PASSPORTS,
  ...AMONG_FORMATS,
  ...REPLAYS,
];
