/** Tokens that must be rejected, each with one fault; the same call without the change makes a valid token. */
import { type KeyObject, sign } from 'node:crypto';
import type { TokenProblemCode } from '../../../src/control/issuers/token-envelope.ts';
import type { TokenRequest } from '../../fakes/service-account-issuer.ts';
import { makeSigner, signCompact, signHmac, signingInput } from '../../fakes/token-signer.ts';
import { good, type TokenCase, type TokenWorld } from './token-case.ts';
import { REFUSED_CLAIMS } from './token-claim-cases.ts';

const stranger = makeSigner('RS256');
const strangerEc = makeSigner('ES256');

const withHeader = (what: string, code: TokenProblemCode, header: TokenRequest['header']): TokenCase => ({
  what,
  code,
  make: (world) => good(world, { header: header ?? {} }),
});

/** Keeps the header and payload of a valid token and replaces its signature. */
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

/** 256 bytes take 342 characters; the last one contains four unused bits. */
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
  withHeader('an unknown kid', 'token_key_unknown', { kid: stranger.kid }),
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

export const REFUSED_TOKENS: readonly TokenCase[] = [
  ...FORMS,
  ...EMBEDDED,
  ...ALGORITHMS,
  ...KEYS,
  ...SIGNATURES,
  ...REFUSED_CLAIMS,
];
