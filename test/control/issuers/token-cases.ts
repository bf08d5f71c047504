/** Tokens that must be rejected, each with one fault; the same call without the change makes a valid token. */
import { type KeyObject, sign } from 'node:crypto';
import type { TokenProblemCode } from '../../../src/control/issuers/token-envelope.ts';
import type { ServiceAccountIssuer, TokenRequest } from '../../support/fakes/service-account-issuer.ts';
import {
  type IssuerSigner,
  makeSigner,
  signCompact,
  signHmac,
  signingInput,
} from '../../support/fixtures/token-signer.ts';

export const NOW_SECONDS = 1_800_000_000;

export interface TokenEnvironment {
  readonly issuer: ServiceAccountIssuer;
  readonly rsa: IssuerSigner;
  readonly ec: IssuerSigner;
  readonly ed: IssuerSigner;
}

type Make = (env: TokenEnvironment) => string;
interface TokenCase {
  readonly what: string;
  readonly code: TokenProblemCode;
  readonly make: Make;
}

function good(env: TokenEnvironment, change: TokenRequest = {}): string {
  return env.issuer.token({ nowMs: NOW_SECONDS * 1000, signer: env.rsa, ...change });
}

/** Cases with one error code, by what is wrong with the token. */
function tokens(code: TokenProblemCode, makes: { readonly [what: string]: Make }): readonly TokenCase[] {
  return Object.entries(makes).map(([what, make]) => ({ what, code, make }));
}

function changed(
  code: TokenProblemCode,
  part: 'header' | 'claims',
  changes: { readonly [what: string]: { readonly [member: string]: unknown } },
): readonly TokenCase[] {
  const makes = Object.entries(changes).map(([what, change]): [string, Make] => [
    what,
    (env) => good(env, { [part]: change }),
  ]);
  return tokens(code, Object.fromEntries(makes));
}

const stranger = makeSigner('RS256');
const strangerEc = makeSigner('ES256');

/** Keeps the header and payload of a valid token and replaces its signature. */
function resigned(env: TokenEnvironment, signature: (input: Buffer) => Buffer | string): string {
  const input = good(env).split('.').slice(0, 2).join('.');
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
  ...tokens('token_malformed', {
    nothing: () => '',
    'a word': () => 'token',
    'two parts': (w) => good(w).split('.').slice(0, 2).join('.'),
    'four parts': (w) => `${good(w)}.a`,
    'five parts, as if encrypted': (w) => `${good(w)}.a.b`,
    'an empty header': (w) => good(w).replace(/^[^.]+/, ''),
    'an empty payload': (w) => good(w).replace(/\.[^.]+\./, '..'),
    'a line feed at the end': (w) => `${good(w)}\n`,
    'a space in front': (w) => ` ${good(w)}`,
    'Bearer in front': (w) => `Bearer ${good(w)}`,
    padding: (w) => `${good(w)}==`,
    'base64 in place of base64url': (w) => `${good(w)}+/`,
    'stray bits in the signature': strayBits,
    'JSON serialization': asJson,
    'a header that is no JSON': (w) => signCompact('no', '{}', w.rsa),
    'a header that is a list': (w) => signCompact('[]', '{}', w.rsa),
    'a header that names alg twice': (w) =>
      signCompact(`{"alg":"none","kid":"${w.rsa.kid}","alg":"RS256"}`, claimsOf(good(w)), w.rsa),
    'more than 16 KiB': (w) => good(w, { claims: { filler: 'a'.repeat(16_384) } }),
    'claims that are no JSON': (w) => signCompact(headerOf(w), 'no', w.rsa),
    'claims that are a list': (w) => signCompact(headerOf(w), '[]', w.rsa),
    'claims that name sub twice': (w) =>
      signCompact(headerOf(w), JSON.stringify(claimsOf(good(w))).replace('{', '{"sub":"x",'), w.rsa),
    'claims that name aud twice, spelt with an escape': (w) =>
      signCompact(headerOf(w), JSON.stringify(claimsOf(good(w))).replace('{', '{"\\u0061ud":"x",'), w.rsa),
  }),
];

const headerOf = (env: TokenEnvironment) => ({ alg: 'RS256', kid: env.rsa.kid });

function asJson(env: TokenEnvironment): string {
  const [header, payload, signature] = good(env).split('.');
  return JSON.stringify({ protected: header, payload, signature });
}

/** 256 bytes take 342 characters; the last one contains four unused bits. */
function strayBits(env: TokenEnvironment): string {
  const token = good(env);
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
  return token.slice(0, -1) + alphabet.charAt(alphabet.indexOf(token.slice(-1)) + 1);
}

const EMBEDDED: readonly TokenCase[] = [
  ...changed('token_header', 'header', {
    'a jwk': { jwk: stranger.jwk },
    'a jku': { jku: 'https://127.0.0.1/keys' },
    'an x5u': { x5u: 'https://127.0.0.1/cert' },
    'an x5c': { x5c: ['AAAA'] },
    crit: { crit: ['exp'] },
    'an empty crit': { crit: [] },
    b64: { b64: false },
    'b64 and crit': { b64: false, crit: ['b64'] },
    'b64 that changes nothing': { b64: true },
    zip: { zip: 'DEF' },
    enc: { enc: 'A256GCM' },
    'cty, a token within a token': { cty: 'JWT' },
    'the type of an access token': { typ: 'at+jwt' },
    'the type of a passport': { typ: 'proofgate-passport+jwt' },
    'the type of a logout token': { typ: 'logout+jwt' },
    'a type that is a list': { typ: ['JWT'] },
  }),
  ...tokens('token_header', {
    'a stranger’s jwk with which the signature verifies': (w) =>
      good(w, { signer: stranger, header: { jwk: stranger.jwk, kid: w.rsa.kid } }),
  }),
];

function hmac(w: TokenEnvironment, secret: string | Buffer, header: object = {}): string {
  return signHmac({ alg: 'HS256', kid: w.rsa.kid, ...header }, claimsOf(good(w)), secret);
}

const FOREIGN_ALGORITHMS = [
  ...['RS384', 'RS512', 'PS384', 'PS512', 'ES384', 'ES512', 'ES256K', 'EdDSA', 'Ed448', 'HS512'],
  ...['RSA-OAEP', 'dir', 'rs256', 'RS256 ', ''],
];

const ALGORITHMS: readonly TokenCase[] = [
  ...tokens('token_algorithm', {
    'none with a signature': (w) => good(w, { header: { alg: 'none' } }),
    'HS256 with the public key in PEM': (w) => hmac(w, publicPem(w.rsa.publicKey)),
    'HS256 with the public key in DER': (w) =>
      hmac(w, w.rsa.publicKey.export({ type: 'spki', format: 'der' })),
    'HS256 with the modulus': (w) => hmac(w, String(w.rsa.jwk.n)),
    'HS256 with the Ed25519 key': (w) =>
      hmac(w, Buffer.from(String(w.ed.jwk.x), 'base64url'), { kid: w.ed.kid }),
    'RS256 for a P-256 key': (w) => good(w, { header: { kid: w.ec.kid } }),
    'Ed25519 for a P-256 key': (w) => good(w, { header: { kid: w.ec.kid, alg: 'Ed25519' } }),
  }),
  ...tokens('token_signature', {
    'RS256 that is an HMAC by the public key': (w) => hmac(w, publicPem(w.rsa.publicKey), { alg: 'RS256' }),
  }),
  ...changed('token_algorithm', 'header', {
    'no algorithm': { alg: undefined },
    'an algorithm that is a list': { alg: ['RS256'] },
    'PS256 for a key that says RS256': { alg: 'PS256' },
    'ES256 for an RSA key': { alg: 'ES256' },
    'Ed25519 for an RSA key': { alg: 'Ed25519' },
  }),
  ...tokens(
    'token_algorithm',
    Object.fromEntries(
      ['none', 'None', 'NONE', 'nOnE'].map((alg): [string, Make] => [
        `${alg} without a signature`,
        (w) => `${signingInput({ alg, kid: w.rsa.kid }, claimsOf(good(w)))}.`,
      ]),
    ),
  ),
  ...changed(
    'token_algorithm',
    'header',
    Object.fromEntries(FOREIGN_ALGORITHMS.map((alg) => [`the algorithm ${JSON.stringify(alg)}`, { alg }])),
  ),
];

const KEYS: readonly TokenCase[] = [
  ...changed('token_key_unknown', 'header', {
    'no kid': { kid: undefined },
    'an empty kid': { kid: '' },
    'a kid that is a number': { kid: 1 },
    'a kid that is a path': { kid: '../../../dev/null' },
    'a kid of __proto__': { kid: '__proto__' },
    'a kid with a space behind': { kid: 'a ' },
    'an unknown kid': { kid: stranger.kid },
  }),
  ...tokens('token_key_unknown', {
    'a stranger’s key': (w) => good(w, { signer: stranger }),
    'a stranger’s P-256 key': (w) => good(w, { signer: strangerEc }),
  }),
];

const SIGNATURES: readonly TokenCase[] = [
  ...tokens('token_signature', {
    'a stranger’s signature under a known name': (w) =>
      good(w, { signer: stranger, header: { kid: w.rsa.kid } }),
    'no signature': (w) => resigned(w, () => ''),
    'a signature of zeros': (w) => resigned(w, () => Buffer.alloc(256)),
    'a signature by another hash': (w) => resigned(w, (input) => sign('sha512', input, w.rsa.privateKey)),
    'a signature of another token': (w) =>
      resigned(w, () => good(w, { claims: { jti: 'other' } }).split('.')[2] ?? ''),
    'a changed header': (w) =>
      good(w).replace(/^[^.]+/, signingInput({ ...headerOf(w), typ: 'JWT' }, '').split('.')[0] ?? ''),
    'a changed payload': (w) =>
      good(w).replace(
        /\.[^.]+\./,
        `.${signingInput('', { ...claimsOf(good(w)), sub: 'system:serviceaccount:prod:root' }).split('.')[1]}.`,
      ),
    'a signature with a byte more': (w) =>
      resigned(w, (input) => Buffer.concat([sign('sha256', input, w.rsa.privateKey), Buffer.alloc(1)])),
    'an ECDSA signature in DER': (w) => derSigned(w),
    'an ECDSA signature of zeros (CVE-2022-21449)': (w) =>
      `${ecInput(w)}.${Buffer.alloc(64).toString('base64url')}`,
    'an Ed25519 signature of zeros': (w) => `${edInput(w)}.${Buffer.alloc(64).toString('base64url')}`,
  }),
];

const ecInput = (env: TokenEnvironment) =>
  signingInput({ alg: 'ES256', kid: env.ec.kid }, claimsOf(good(env)));
const edInput = (env: TokenEnvironment) =>
  signingInput({ alg: 'Ed25519', kid: env.ed.kid }, claimsOf(good(env)));

function derSigned(env: TokenEnvironment): string {
  const input = ecInput(env);
  return `${input}.${sign('sha256', Buffer.from(input), env.ec.privateKey).toString('base64url')}`;
}

const SUBJECT = 'system:serviceaccount:prod:billing';
/** Cyrillic а and і, full-width colons, a soft hyphen: strings that look the same to a person. */
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
  ...changed('token_issuer', 'claims', {
    'no issuer': { iss: undefined },
    'another issuer': { iss: 'https://other.example' },
    'an issuer that is a list': { iss: ['https://other.example'] },
    'an issuer that is null': { iss: null },
    'the issuer of an old secret token': { iss: 'kubernetes/serviceaccount' },
  }),
  ...tokens('token_issuer', {
    'an issuer with a slash more': (w) => good(w, { claims: { iss: `${w.issuer.issuer}/` } }),
    'an issuer in capitals': (w) => good(w, { claims: { iss: w.issuer.issuer.toUpperCase() } }),
    'a list of the one issuer': (w) => good(w, { claims: { iss: [w.issuer.issuer] } }),
  }),
  ...changed('token_audience', 'claims', {
    'no audience': { aud: undefined },
    'another audience': { aud: ['another'] },
    'the audience of the cluster itself': {
      aud: ['https://kubernetes.default.svc'],
    },
    'an empty list': { aud: [] },
    'a second audience': { aud: ['proofgate-shop', 'another'] },
    'a second audience in front': { aud: ['another', 'proofgate-shop'] },
    'the audience twice': { aud: ['proofgate-shop', 'proofgate-shop'] },
    'the audience and an empty one': { aud: ['proofgate-shop', ''] },
    'the audience in a list in a list': { aud: [['proofgate-shop']] },
    'the audience as an object': { aud: { 0: 'proofgate-shop', length: 1 } },
    'audiences in one text': { aud: 'proofgate-shop another' },
    'the audience in capitals': { aud: ['PROOFGATE-SHOP'] },
    'the audience with a space': { aud: ['proofgate-shop '] },
    'the audience and more': { aud: ['proofgate-shop-2'] },
    'a number as audience': { aud: 1 },
    'null as audience': { aud: null },
  }),
  ...changed('token_subject', 'claims', {
    'no subject': { sub: undefined },
    'a subject that is a list': { sub: [SUBJECT] },
    'a subject that is null': { sub: null },
  }),
  ...changed(
    'token_subject',
    'claims',
    Object.fromEntries(LOOK_ALIKES.map((sub) => [`the look-alike ${JSON.stringify(sub)}`, { sub }])),
  ),
];

const DAYS_2 = 172_800;
const TIMES: readonly TokenCase[] = [
  ...changed('token_expiry_missing', 'claims', {
    'no exp': { exp: undefined },
  }),
  ...changed('token_claims', 'claims', {
    'an exp that is null': { exp: null },
    'an exp that is a text': { exp: String(NOW_SECONDS + 60) },
    'an exp with a fraction': { exp: NOW_SECONDS + 0.5 },
    'an exp below zero': { exp: -1 },
    'an exp of more than 2^53': { exp: 2 ** 60 },
    'an nbf that is a text': { nbf: '1' },
    'an nbf that is null': { nbf: null },
    'an iat that is a text': { iat: 'now' },
    'an iat that is true': { iat: true },
    'an end before its beginning': { exp: NOW_SECONDS + 1, iat: NOW_SECONDS + 1 },
    'an end before its nbf': { exp: NOW_SECONDS + 1, nbf: NOW_SECONDS + 20 },
    'another namespace in the cluster’s claims': {
      'kubernetes.io': { namespace: 'dev' },
    },
    'another account in the cluster’s claims': {
      'kubernetes.io': { namespace: 'prod', serviceaccount: { name: 'root' } },
    },
  }),
  ...changed('token_expired', 'claims', {
    'an exp of now': { exp: NOW_SECONDS },
    'an exp a second ago': {
      exp: NOW_SECONDS - 1,
      iat: NOW_SECONDS - 100,
      nbf: NOW_SECONDS - 100,
    },
    'an exp of zero': { exp: 0 },
  }),
  ...changed('token_not_yet_valid', 'claims', {
    'an nbf ahead': { nbf: NOW_SECONDS + 31 },
    'an iat ahead': { iat: NOW_SECONDS + 31 },
  }),
  ...changed('token_lifetime', 'claims', {
    'a life of more than two days': { exp: NOW_SECONDS + DAYS_2 + 1 },
    'a long life without iat': { iat: undefined, exp: NOW_SECONDS + DAYS_2 + 1 },
    'a life of a year, nearly over': {
      iat: NOW_SECONDS - 31_000_000,
      exp: NOW_SECONDS + 60,
    },
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
