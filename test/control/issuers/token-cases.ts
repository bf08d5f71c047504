/** Tokens that must be refused, each wrong in one way; a good one is the same call without the change. */
import { type KeyObject, sign } from 'node:crypto';
import type { TokenRefusalCode } from '../../../src/control/issuers/token-refusal.ts';
import type { ServiceAccountIssuer, TokenRequest } from '../../fakes/service-account-issuer.ts';
import {
  type IssuerSigner,
  makeSigner,
  signCompact,
  signHmac,
  signingInput,
} from '../../fakes/token-signer.ts';

export const NOW_SECONDS = 1_800_000_000;

export interface TokenWorld {
  readonly issuer: ServiceAccountIssuer;
  readonly rsa: IssuerSigner;
  readonly ec: IssuerSigner;
  readonly ed: IssuerSigner;
}

export interface TokenCase {
  readonly what: string;
  readonly code: TokenRefusalCode;
  readonly make: (world: TokenWorld) => string;
}

const stranger = makeSigner('RS256');
const strangerEc = makeSigner('ES256');

const good = (world: TokenWorld, change: TokenRequest = {}) =>
  world.issuer.token({ nowMs: NOW_SECONDS * 1000, signer: world.rsa, ...change });

const withClaims = (what: string, code: TokenRefusalCode, claims: TokenRequest['claims']): TokenCase => ({
  what,
  code,
  make: (world) => good(world, { claims: claims ?? {} }),
});

const withHeader = (what: string, code: TokenRefusalCode, header: TokenRequest['header']): TokenCase => ({
  what,
  code,
  make: (world) => good(world, { header: header ?? {} }),
});

/** The header and payload of a good token as they are, and another signature. */
function resigned(world: TokenWorld, signature: (input: Buffer) => Buffer | string): string {
  const input = good(world).split('.').slice(0, 2).join('.');
  const bytes = signature(Buffer.from(input));
  return `${input}.${typeof bytes === 'string' ? bytes : bytes.toString('base64url')}`;
}

function publicPem(key: KeyObject): string {
  return key.export({ type: 'spki', format: 'pem' }).toString();
}

function claimsOf(token: string): { readonly [name: string]: unknown } {
  return JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString());
}

const FORMS: readonly TokenCase[] = [
  { what: 'nothing', code: 'token_malformed', make: () => '' },
  { what: 'a word', code: 'token_malformed', make: () => 'token' },
  { what: 'two parts', code: 'token_malformed', make: (w) => good(w).split('.').slice(0, 2).join('.') },
  { what: 'four parts', code: 'token_malformed', make: (w) => `${good(w)}.a` },
  { what: 'five parts, as if encrypted', code: 'token_malformed', make: (w) => `${good(w)}.a.b` },
  { what: 'an empty header', code: 'token_malformed', make: (w) => good(w).replace(/^[^.]+/, '') },
  { what: 'an empty payload', code: 'token_malformed', make: (w) => good(w).replace(/\.[^.]+\./, '..') },
  { what: 'a line feed at the end', code: 'token_malformed', make: (w) => `${good(w)}\n` },
  { what: 'a space in front', code: 'token_malformed', make: (w) => ` ${good(w)}` },
  { what: 'Bearer in front', code: 'token_malformed', make: (w) => `Bearer ${good(w)}` },
  { what: 'padding', code: 'token_malformed', make: (w) => `${good(w)}==` },
  { what: 'base64 in place of base64url', code: 'token_malformed', make: (w) => `${good(w)}+/` },
  { what: 'stray bits in the signature', code: 'token_malformed', make: strayBits },
  { what: 'JSON serialization', code: 'token_malformed', make: asJson },
  { what: 'a header that is no JSON', code: 'token_malformed', make: (w) => signCompact('no', '{}', w.rsa) },
  { what: 'a header that is a list', code: 'token_malformed', make: (w) => signCompact('[]', '{}', w.rsa) },
  {
    what: 'a header that names alg twice',
    code: 'token_malformed',
    make: (w) => signCompact(`{"alg":"none","kid":"${w.rsa.kid}","alg":"RS256"}`, claimsOf(good(w)), w.rsa),
  },
  {
    what: 'more than 16 KiB',
    code: 'token_malformed',
    make: (w) => good(w, { claims: { filler: 'a'.repeat(16_384) } }),
  },
  {
    what: 'claims that are no JSON',
    code: 'token_malformed',
    make: (w) => signCompact(headerOf(w), 'no', w.rsa),
  },
  {
    what: 'claims that are a list',
    code: 'token_malformed',
    make: (w) => signCompact(headerOf(w), '[]', w.rsa),
  },
  {
    what: 'claims that name sub twice',
    code: 'token_malformed',
    make: (w) =>
      signCompact(headerOf(w), JSON.stringify(claimsOf(good(w))).replace('{', '{"sub":"x",'), w.rsa),
  },
  {
    what: 'claims that name aud twice, spelt with an escape',
    code: 'token_malformed',
    make: (w) =>
      signCompact(headerOf(w), JSON.stringify(claimsOf(good(w))).replace('{', '{"\\u0061ud":"x",'), w.rsa),
  },
];

const headerOf = (world: TokenWorld) => ({ alg: 'RS256', kid: world.rsa.kid });

function asJson(world: TokenWorld): string {
  const [header, payload, signature] = good(world).split('.');
  return JSON.stringify({ protected: header, payload, signature });
}

/** 256 bytes take 342 characters, the last of which holds four bits that mean nothing. */
function strayBits(world: TokenWorld): string {
  const token = good(world);
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
  return token.slice(0, -1) + alphabet.charAt(alphabet.indexOf(token.slice(-1)) + 1);
}

const EMBEDDED: readonly TokenCase[] = [
  withHeader('a jwk', 'token_header', { jwk: stranger.jwk }),
  withHeader('a jku', 'token_header', { jku: 'https://127.0.0.1/keys' }),
  withHeader('an x5u', 'token_header', { x5u: 'https://127.0.0.1/cert' }),
  withHeader('an x5c', 'token_header', { x5c: ['AAAA'] }),
  withHeader('crit', 'token_header', { crit: ['exp'] }),
  withHeader('an empty crit', 'token_header', { crit: [] }),
  withHeader('b64', 'token_header', { b64: false }),
  withHeader('b64 and crit', 'token_header', { b64: false, crit: ['b64'] }),
  withHeader('b64 that changes nothing', 'token_header', { b64: true }),
  withHeader('zip', 'token_header', { zip: 'DEF' }),
  withHeader('enc', 'token_header', { enc: 'A256GCM' }),
  withHeader('cty, a token within a token', 'token_header', { cty: 'JWT' }),
  withHeader('the type of an access token', 'token_header', { typ: 'at+jwt' }),
  withHeader('the type of a passport', 'token_header', { typ: 'proofgate-passport+jwt' }),
  withHeader('the type of a logout token', 'token_header', { typ: 'logout+jwt' }),
  withHeader('a type that is a list', 'token_header', { typ: ['JWT'] }),
  {
    what: 'a stranger’s jwk with which the signature verifies',
    code: 'token_header',
    make: (w) => good(w, { signer: stranger, header: { jwk: stranger.jwk, kid: w.rsa.kid } }),
  },
];

const ALGORITHMS: readonly TokenCase[] = [
  ...['none', 'None', 'NONE', 'nOnE'].map(
    (alg): TokenCase => ({
      what: `${alg} without a signature`,
      code: 'token_algorithm',
      make: (w) => `${signingInput({ alg, kid: w.rsa.kid }, claimsOf(good(w)))}.`,
    }),
  ),
  {
    what: 'none with a signature',
    code: 'token_algorithm',
    make: (w) => good(w, { header: { alg: 'none' } }),
  },
  {
    what: 'HS256 with the public key in PEM',
    code: 'token_algorithm',
    make: (w) => signHmac({ alg: 'HS256', kid: w.rsa.kid }, claimsOf(good(w)), publicPem(w.rsa.publicKey)),
  },
  {
    what: 'HS256 with the public key in DER',
    code: 'token_algorithm',
    make: (w) =>
      signHmac(
        { alg: 'HS256', kid: w.rsa.kid },
        claimsOf(good(w)),
        w.rsa.publicKey.export({ type: 'spki', format: 'der' }),
      ),
  },
  {
    what: 'HS256 with the modulus',
    code: 'token_algorithm',
    make: (w) => signHmac({ alg: 'HS256', kid: w.rsa.kid }, claimsOf(good(w)), String(w.rsa.jwk.n)),
  },
  {
    what: 'HS256 with the Ed25519 key',
    code: 'token_algorithm',
    make: (w) =>
      signHmac(
        { alg: 'HS256', kid: w.ed.kid },
        claimsOf(good(w)),
        Buffer.from(String(w.ed.jwk.x), 'base64url'),
      ),
  },
  {
    what: 'RS256 that is an HMAC by the public key',
    code: 'token_signature',
    make: (w) => signHmac({ alg: 'RS256', kid: w.rsa.kid }, claimsOf(good(w)), publicPem(w.rsa.publicKey)),
  },
  ...[
    'RS384',
    'RS512',
    'PS384',
    'PS512',
    'ES384',
    'ES512',
    'ES256K',
    'EdDSA',
    'Ed448',
    'HS512',
    'RSA-OAEP',
    'dir',
    'rs256',
    'RS256 ',
    '',
  ].map((alg) => withHeader(`the algorithm ${JSON.stringify(alg)}`, 'token_algorithm', { alg })),
  withHeader('no algorithm', 'token_algorithm', { alg: undefined }),
  withHeader('an algorithm that is a list', 'token_algorithm', { alg: ['RS256'] }),
  withHeader('PS256 for a key that says RS256', 'token_algorithm', { alg: 'PS256' }),
  withHeader('ES256 for an RSA key', 'token_algorithm', { alg: 'ES256' }),
  withHeader('Ed25519 for an RSA key', 'token_algorithm', { alg: 'Ed25519' }),
  {
    what: 'RS256 for a P-256 key',
    code: 'token_algorithm',
    make: (w) => good(w, { header: { kid: w.ec.kid } }),
  },
  {
    what: 'Ed25519 for a P-256 key',
    code: 'token_algorithm',
    make: (w) => good(w, { header: { kid: w.ec.kid, alg: 'Ed25519' } }),
  },
];

const KEYS: readonly TokenCase[] = [
  withHeader('no kid', 'token_key_unknown', { kid: undefined }),
  withHeader('an empty kid', 'token_key_unknown', { kid: '' }),
  withHeader('a kid that is a number', 'token_key_unknown', { kid: 1 }),
  withHeader('a kid that is a path', 'token_key_unknown', { kid: '../../../dev/null' }),
  withHeader('a kid of __proto__', 'token_key_unknown', { kid: '__proto__' }),
  withHeader('a kid with a space behind', 'token_key_unknown', { kid: 'a ' }),
  withHeader('the kid of nobody', 'token_key_unknown', { kid: stranger.kid }),
  { what: 'a stranger’s key', code: 'token_key_unknown', make: (w) => good(w, { signer: stranger }) },
  { what: 'a stranger’s P-256 key', code: 'token_key_unknown', make: (w) => good(w, { signer: strangerEc }) },
];

const SIGNATURES: readonly TokenCase[] = [
  {
    what: 'a stranger’s signature under a known name',
    code: 'token_signature',
    make: (w) => good(w, { signer: stranger, header: { kid: w.rsa.kid } }),
  },
  { what: 'no signature', code: 'token_signature', make: (w) => resigned(w, () => '') },
  {
    what: 'a signature of zeros',
    code: 'token_signature',
    make: (w) => resigned(w, () => Buffer.alloc(256)),
  },
  {
    what: 'a signature by another hash',
    code: 'token_signature',
    make: (w) => resigned(w, (input) => sign('sha512', input, w.rsa.privateKey)),
  },
  {
    what: 'a signature of another token',
    code: 'token_signature',
    make: (w) => resigned(w, () => good(w, { claims: { jti: 'other' } }).split('.')[2] ?? ''),
  },
  {
    what: 'a changed header',
    code: 'token_signature',
    make: (w) =>
      good(w).replace(/^[^.]+/, signingInput({ ...headerOf(w), typ: 'JWT' }, '').split('.')[0] ?? ''),
  },
  {
    what: 'a changed payload',
    code: 'token_signature',
    make: (w) =>
      good(w).replace(
        /\.[^.]+\./,
        `.${signingInput('', { ...claimsOf(good(w)), sub: 'system:serviceaccount:prod:root' }).split('.')[1]}.`,
      ),
  },
  {
    what: 'a signature with a byte more',
    code: 'token_signature',
    make: (w) =>
      resigned(w, (input) => Buffer.concat([sign('sha256', input, w.rsa.privateKey), Buffer.alloc(1)])),
  },
  { what: 'an ECDSA signature in DER', code: 'token_signature', make: (w) => derSigned(w) },
  {
    what: 'an ECDSA signature of zeros (CVE-2022-21449)',
    code: 'token_signature',
    make: (w) => `${ecInput(w)}.${Buffer.alloc(64).toString('base64url')}`,
  },
  {
    what: 'an Ed25519 signature of zeros',
    code: 'token_signature',
    make: (w) => `${edInput(w)}.${Buffer.alloc(64).toString('base64url')}`,
  },
];

const ecInput = (world: TokenWorld) =>
  signingInput({ alg: 'ES256', kid: world.ec.kid }, claimsOf(good(world)));
const edInput = (world: TokenWorld) =>
  signingInput({ alg: 'Ed25519', kid: world.ed.kid }, claimsOf(good(world)));

function derSigned(world: TokenWorld): string {
  const input = ecInput(world);
  return `${input}.${sign('sha256', Buffer.from(input), world.ec.privateKey).toString('base64url')}`;
}

const SUBJECT = 'system:serviceaccount:prod:billing';
/** A Cyrillic а and і, full-width colons, a soft hyphen: what a person takes for the same. */
const LOOK_ALIKES = [
  'system:serviceaccount:prod:Billing',
  'System:serviceaccount:prod:billing',
  'system:serviceaccount:prod:billing ',
  ' system:serviceaccount:prod:billing',
  'system:serviceaccount:prod:billing\n',
  'system:serviceaccount:prod:billing\u0000',
  'system:serviceaccount:prod:billing-2',
  'system:serviceaccount:prod:billin',
  'system:serviceaccount:prod:*',
  'system:serviceaccount:prod',
  'system:serviceaccount:prod:',
  'system:serviceaccount:prod:billing:x',
  'system:serviceaccount::billing',
  'system:serviceaccount:prod-2:billing',
  'system:serviceaccount:dev:billing',
  'system:serviceaccounts:prod:billing',
  'system:serviceaccount:prod/billing',
  'system:serviceaccount:prod:b\u0456lling',
  'system:serviceaccount:prod:billing\u200b',
  'system\uff1aserviceaccount:prod:billing',
  'system:serviceaccount:prod:bill\u00ading',
  'system:serviceaccount:prod:%62illing',
  'billing',
  '',
  'https://kubernetes.default.svc/system:serviceaccount:prod:billing',
];

const IDENTITIES: readonly TokenCase[] = [
  withClaims('no issuer', 'token_issuer', { iss: undefined }),
  withClaims('another issuer', 'token_issuer', { iss: 'https://other.example' }),
  withClaims('an issuer that is a list', 'token_issuer', { iss: ['https://other.example'] }),
  withClaims('an issuer that is null', 'token_issuer', { iss: null }),
  withClaims('the issuer of an old secret token', 'token_issuer', { iss: 'kubernetes/serviceaccount' }),
  {
    what: 'an issuer with a slash more',
    code: 'token_issuer',
    make: (w) => good(w, { claims: { iss: `${w.issuer.issuer}/` } }),
  },
  {
    what: 'an issuer in capitals',
    code: 'token_issuer',
    make: (w) => good(w, { claims: { iss: w.issuer.issuer.toUpperCase() } }),
  },
  {
    what: 'a list of the one issuer',
    code: 'token_issuer',
    make: (w) => good(w, { claims: { iss: [w.issuer.issuer] } }),
  },
  withClaims('no audience', 'token_audience', { aud: undefined }),
  withClaims('another audience', 'token_audience', { aud: ['another'] }),
  withClaims('the audience of the cluster itself', 'token_audience', {
    aud: ['https://kubernetes.default.svc'],
  }),
  withClaims('an empty list', 'token_audience', { aud: [] }),
  withClaims('a second audience', 'token_audience', { aud: ['proofgate-shop', 'another'] }),
  withClaims('a second audience in front', 'token_audience', { aud: ['another', 'proofgate-shop'] }),
  withClaims('the audience twice', 'token_audience', { aud: ['proofgate-shop', 'proofgate-shop'] }),
  withClaims('the audience and an empty one', 'token_audience', { aud: ['proofgate-shop', ''] }),
  withClaims('the audience in a list in a list', 'token_audience', { aud: [['proofgate-shop']] }),
  withClaims('the audience as an object', 'token_audience', { aud: { 0: 'proofgate-shop', length: 1 } }),
  withClaims('audiences in one text', 'token_audience', { aud: 'proofgate-shop another' }),
  withClaims('the audience in capitals', 'token_audience', { aud: ['PROOFGATE-SHOP'] }),
  withClaims('the audience with a space', 'token_audience', { aud: ['proofgate-shop '] }),
  withClaims('the audience and more', 'token_audience', { aud: ['proofgate-shop-2'] }),
  withClaims('a number as audience', 'token_audience', { aud: 1 }),
  withClaims('null as audience', 'token_audience', { aud: null }),
  withClaims('no subject', 'token_subject', { sub: undefined }),
  withClaims('a subject that is a list', 'token_subject', { sub: [SUBJECT] }),
  withClaims('a subject that is null', 'token_subject', { sub: null }),
  ...LOOK_ALIKES.map((sub) => withClaims(`the look-alike ${JSON.stringify(sub)}`, 'token_subject', { sub })),
];

const DAYS_2 = 172_800;
const TIMES: readonly TokenCase[] = [
  withClaims('no exp', 'token_expiry_missing', { exp: undefined }),
  withClaims('an exp that is null', 'token_claims', { exp: null }),
  withClaims('an exp that is a text', 'token_claims', { exp: String(NOW_SECONDS + 60) }),
  withClaims('an exp with a fraction', 'token_claims', { exp: NOW_SECONDS + 0.5 }),
  withClaims('an exp below zero', 'token_claims', { exp: -1 }),
  withClaims('an exp of more than 2^53', 'token_claims', { exp: 2 ** 60 }),
  withClaims('an exp of now', 'token_expired', { exp: NOW_SECONDS }),
  withClaims('an exp a second ago', 'token_expired', {
    exp: NOW_SECONDS - 1,
    iat: NOW_SECONDS - 100,
    nbf: NOW_SECONDS - 100,
  }),
  withClaims('an exp of zero', 'token_expired', { exp: 0 }),
  withClaims('an nbf ahead', 'token_not_yet_valid', { nbf: NOW_SECONDS + 31 }),
  withClaims('an nbf that is a text', 'token_claims', { nbf: '1' }),
  withClaims('an nbf that is null', 'token_claims', { nbf: null }),
  withClaims('an iat ahead', 'token_not_yet_valid', { iat: NOW_SECONDS + 31 }),
  withClaims('an iat that is a text', 'token_claims', { iat: 'now' }),
  withClaims('an iat that is true', 'token_claims', { iat: true }),
  withClaims('an end before its beginning', 'token_claims', { exp: NOW_SECONDS + 1, iat: NOW_SECONDS + 1 }),
  withClaims('an end before its nbf', 'token_claims', { exp: NOW_SECONDS + 1, nbf: NOW_SECONDS + 20 }),
  withClaims('a life of more than two days', 'token_lifetime', { exp: NOW_SECONDS + DAYS_2 + 1 }),
  withClaims('a long life without iat', 'token_lifetime', { iat: undefined, exp: NOW_SECONDS + DAYS_2 + 1 }),
  withClaims('a life of a year, nearly over', 'token_lifetime', {
    iat: NOW_SECONDS - 31_000_000,
    exp: NOW_SECONDS + 60,
  }),
  withClaims('another namespace in the cluster’s claims', 'token_claims', {
    'kubernetes.io': { namespace: 'dev' },
  }),
  withClaims('another account in the cluster’s claims', 'token_claims', {
    'kubernetes.io': { namespace: 'prod', serviceaccount: { name: 'root' } },
  }),
];

export const REFUSED_TOKENS: readonly TokenCase[] = [
  ...FORMS,
  ...EMBEDDED,
  ...ALGORITHMS,
  ...KEYS,
  ...SIGNATURES,
  ...IDENTITIES,
  ...TIMES,
];
