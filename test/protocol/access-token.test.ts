/** What an access token may look like. */
import { describe, expect, it } from '@jest/globals';
import { parseAccessToken } from '../../src/protocol/access-token.ts';
import { MAX_PASSPORT_BYTES } from '../../src/protocol/limits.ts';
import { passportSha256 } from '../../src/protocol/passport.ts';

type Members = Record<string, unknown>;

const HEADER: Members = { typ: 'at+jwt', alg: 'RS256', kid: 'key-1' };
const CLAIMS: Members = {
  iss: 'https://login.example/realms/shop',
  aud: 'orders-api',
  sub: 'f3b1',
  client_id: 'billing',
  iat: 1_800_000_000,
  exp: 1_800_000_300,
  jti: 'token-1',
  scope: 'orders.read orders.write',
  cnf: { jkt: '0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I' },
};

const encode = (text: string) => Buffer.from(text).toString('base64url');
const ofTexts = (header: string, claims: string, signature = 'A'.repeat(342)) =>
  `${encode(header)}.${encode(claims)}.${signature}`;
const token = (header: Members, claims: Members) => ofTexts(JSON.stringify(header), JSON.stringify(claims));
const withHeader = (members: Members) => parseAccessToken(token({ ...HEADER, ...members }, CLAIMS));
const withClaims = (members: Members) => parseAccessToken(token(HEADER, { ...CLAIMS, ...members }));

it('is read with all of its claims', () => {
  expect(parseAccessToken(token(HEADER, CLAIMS))).toEqual({
    sha256: passportSha256(token(HEADER, CLAIMS)),
    type: 'at+jwt',
    algorithm: 'RS256',
    keyId: 'key-1',
    issuer: 'https://login.example/realms/shop',
    audiences: ['orders-api'],
    issuedAtSeconds: 1_800_000_000,
    expiresAtSeconds: 1_800_000_300,
    notBeforeSeconds: undefined,
    tokenId: 'token-1',
    holderThumbprint: '0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I',
    claims: CLAIMS,
    signingInput: Buffer.from(token(HEADER, CLAIMS).split('.').slice(0, 2).join('.')),
    signature: Buffer.alloc(256),
  });
});

describe('its header', () => {
  it.each<[Members, string]>([
    [{ typ: 'application/at+jwt' }, 'at+jwt'],
    [{ typ: 'JWT' }, 'JWT'],
    [{ x5t: 'a', cty: 'json' }, 'at+jwt'],
  ])('%j', (members, type) => {
    expect(withHeader(members)?.type).toBe(type);
  });

  it.each<[string, string]>([
    ['PS256', 'PS256'],
    ['ES256', 'ES256'],
    ['Ed25519', 'Ed25519'],
    ['EdDSA', 'Ed25519'],
  ])('may have the algorithm %s', (alg, algorithm) => {
    expect(withHeader({ alg })?.algorithm).toBe(algorithm);
  });

  it.each<[string, Members]>([
    ['no type', { typ: undefined }],
    ['the type of a passport', { typ: 'proofgate-passport+jwt' }],
    ['the type of a DPoP proof', { typ: 'dpop+jwt' }],
    ['the type of a logout token', { typ: 'logout+jwt' }],
    ['no algorithm', { alg: 'none' }],
    ['a shared secret', { alg: 'HS256' }],
    ['a longer hash', { alg: 'RS512' }],
    ['no key', { kid: undefined }],
    ['a key that is no text', { kid: 1 }],
    ['critical members', { crit: ['exp'] }],
    ['an address of keys', { jku: 'https://attacker.example/keys' }],
    ['an address of certificates', { x5u: 'https://attacker.example/certificates' }],
    ['a key of its own', { jwk: { kty: 'OKP' } }],
    ['an unencoded payload', { b64: true }],
  ])('is refused with %s', (_, members) => {
    expect(withHeader(members)).toBeUndefined();
  });
});

describe('its claims', () => {
  it.each<[string, Members]>([
    ['no issuer', { iss: undefined }],
    ['an issuer with a space', { iss: 'https://login.example/a b' }],
    ['no audience', { aud: undefined }],
    ['an empty list of audiences', { aud: [] }],
    ['17 audiences', { aud: Array.from({ length: 17 }, (_, i) => `api-${i}`) }],
    ['an audience that is no text', { aud: ['orders-api', 1] }],
    ['no begin', { iat: undefined }],
    ['no end', { exp: undefined }],
    ['an end as text', { exp: '1800000300' }],
    ['a start that is no time', { nbf: null }],
    ['an identifier that is no text', { jti: 1 }],
    ['no holder', { cnf: undefined }],
    ['no key of the holder', { cnf: {} }],
    ['two ways to bind', { cnf: { ...(CLAIMS.cnf as Members), 'x5t#S256': 'a' } }],
    ['a key instead of its thumbprint', { cnf: { jwk: {} } }],
    ['a thumbprint in another spelling', { cnf: { jkt: '0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4J' } }],
    ['eight levels', { a: [[[[[[[[1]]]]]]]] }],
    ['513 members', Object.fromEntries(Array.from({ length: 513 }, (_, i) => [`a${i}`, 1]))],
  ])('are refused with %s', (_, members) => {
    expect(withClaims(members)).toBeUndefined();
  });

  it.each(['nonce', 'at_hash', 'events'])('of the type JWT have no %s, which other tokens have', (name) => {
    expect(parseAccessToken(token({ ...HEADER, typ: 'JWT' }, { ...CLAIMS, [name]: 'a' }))).toBeUndefined();
    expect(withClaims({ [name]: 'a' })).toBeDefined();
  });

  it('may have text beyond ASCII, lists and objects that nothing reads', () => {
    const claims = {
      name: 'Ünal',
      roles: ['a'],
      realm_access: { roles: ['b'] },
      aud: ['account', 'orders-api'],
    };
    expect(withClaims(claims)).toMatchObject({ audiences: ['account', 'orders-api'], claims });
  });
});

it.each<[string, string]>([
  [
    'too long',
    ofTexts(JSON.stringify(HEADER), JSON.stringify({ ...CLAIMS, a: 'a'.repeat(MAX_PASSPORT_BYTES) })),
  ],
  ['a claim twice', ofTexts(JSON.stringify(HEADER), `{"\\u0069ss":"b",${JSON.stringify(CLAIMS).slice(1)}`)],
  ['a header member twice', ofTexts(`{"kid":"b",${JSON.stringify(HEADER).slice(1)}`, JSON.stringify(CLAIMS))],
  ['a signature of 513 bytes', ofTexts(JSON.stringify(HEADER), JSON.stringify(CLAIMS), 'A'.repeat(684))],
  ['five parts', `${token(HEADER, CLAIMS)}.AAAA.AAAA`],
  ['four parts', `${token(HEADER, CLAIMS)}.`],
  ['two parts', token(HEADER, CLAIMS).split('.').slice(0, 2).join('.')],
  ['padding', token(HEADER, CLAIMS).replace('.', '=.')],
  [
    'bytes that are no UTF-8',
    [encode(JSON.stringify(HEADER)), Buffer.from('{"a":"\xff"}', 'latin1').toString('base64url'), ''].join(
      '.',
    ),
  ],
  ['no JSON', ofTexts(JSON.stringify(HEADER), '{')],
  ['nothing', ''],
])('refuses %s', (_, text) => {
  expect(parseAccessToken(text)).toBeUndefined();
});
