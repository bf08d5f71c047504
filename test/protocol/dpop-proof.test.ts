/** What a DPoP proof may look like. The proof of RFC 9449 section 7.1 is its figure 13. */
import { describe, expect, it } from '@jest/globals';
import { MAX_DPOP_PROOF_BYTES, parseDpopProof } from '../../src/protocol/dpop-proof.ts';
import { importPublicKey } from '../../src/protocol/import-public-key.ts';
import { passportSha256 } from '../../src/protocol/passport.ts';
import { thumbprintOf } from '../../src/protocol/public-key.ts';
import { verifySignature } from '../../src/protocol/verify-signature.ts';

const RFC_PROOF = [
  'eyJ0eXAiOiJkcG9wK2p3dCIsImFsZyI6IkVTMjU2IiwiandrIjp7Imt0eSI6IkVDIiwieCI6Imw4dEZyaHgtMzR0VjNoUklDUkRZOXpDa0RscEJoRjQyVVFVZldWQVdCRnMiLCJ5IjoiOVZFNGpmX09rX282NHpiVFRsY3VOSmFqSG10NnY5VERWclUwQ2R2R1JEQSIsImNydiI6IlAtMjU2In19',
  'eyJqdGkiOiJlMWozVl9iS2ljOC1MQUVCIiwiaHRtIjoiR0VUIiwiaHR1IjoiaHR0cHM6Ly9yZXNvdXJjZS5leGFtcGxlLm9yZy9wcm90ZWN0ZWRyZXNvdXJjZSIsImlhdCI6MTU2MjI2MjYxOCwiYXRoIjoiZlVIeU8ycjJaM0RaNTNFc05yV0JiMHhXWG9hTnk1OUlpS0NBcWtzbVFFbyJ9',
  '2oW9RP35yRqzhrtNP86L-Ey71EOptxRimPPToA1plemAgR6pxHF8y6-yqyVnmcw6Fy1dqd-jfxSYoMxhAJpLjA',
].join('.');

type Members = Record<string, unknown>;

const JWK = { kty: 'OKP', crv: 'Ed25519', x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo' };
const HEADER: Members = { typ: 'dpop+jwt', alg: 'Ed25519', jwk: JWK };
const CLAIMS: Members = {
  htm: 'GET',
  htu: 'https://api.example/v1/orders',
  iat: 1_800_000_000,
  jti: 'e1j3V_bKic8-LAEB',
  ath: 'fUHyO2r2Z3DZ53EsNrWBb0xWXoaNy59IiKCAqksmQEo',
};

const encode = (text: string) => Buffer.from(text).toString('base64url');
const ofTexts = (header: string, claims: string, signature = 'A'.repeat(86)) =>
  `${encode(header)}.${encode(claims)}.${signature}`;
const proof = (header: Members, claims: Members) => ofTexts(JSON.stringify(header), JSON.stringify(claims));
const withHeader = (members: Members) => parseDpopProof(proof({ ...HEADER, ...members }, CLAIMS));
const withClaims = (members: Members) => parseDpopProof(proof(HEADER, { ...CLAIMS, ...members }));
const withJwk = (members: Members) => withHeader({ jwk: { ...JWK, ...members } });

it('reads the example of RFC 9449 section 7.1, whose signature, thumbprint and token hash are right', () => {
  const read = parseDpopProof(RFC_PROOF);
  if (read === undefined) throw new Error('not read');
  expect(read).toMatchObject({
    method: 'GET',
    origin: { scheme: 'https', authority: 'resource.example.org' },
    path: '/protectedresource',
    jti: 'e1j3V_bKic8-LAEB',
    issuedAtSeconds: 1_562_262_618,
    nonce: undefined,
  });
  expect(thumbprintOf(read.jwk)).toBe('0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I');
  expect(read.tokenSha256).toBe(passportSha256('Kz~8mXK1EalYznwH-LC-1fBAo.4Ljp~zsPE_NeO.gxU'));
  const key = importPublicKey(read.jwk);
  expect(key && verifySignature(key, read.signingInput, read.signature)).toBe(true);
});

describe('the header', () => {
  it.each<[string, Members]>([
    ['another type', { typ: 'JWT' }],
    ['the type in capitals', { typ: 'DPOP+JWT' }],
    ['no type', { typ: undefined }],
    ['no algorithm', { alg: 'none' }],
    ['the algorithm of another key', { alg: 'ES256' }],
    ['a shared secret', { alg: 'HS256' }],
    ['an address of keys', { jku: 'https://attacker.example/keys' }],
    ['a key name', { kid: 'a' }],
    ['critical members', { crit: ['b64'], b64: false }],
    ['a key that is no object', { jwk: 'key' }],
    ['two keys', { jwk: [JWK, JWK] }],
  ])('refuses %s', (_, members) => {
    expect(withHeader(members)).toBeUndefined();
  });

  it.each<[string, Members]>([
    ['a private member', { d: 'nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A' }],
    ['a shared secret', { k: 'c2VjcmV0' }],
    ['a certificate', { x5c: [] }],
    ['another curve', { crv: 'Ed448' }],
    ['coordinates in another spelling', { x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURp' }],
  ])('refuses a key with %s', (_, members) => {
    expect(withJwk(members)).toBeUndefined();
  });

  it('ignores what a key says about its use, and takes EdDSA as the name of Ed25519', () => {
    const jwk = { ...JWK, kid: 'a', use: 'sig', alg: 'EdDSA', key_ops: ['verify'], ext: true };
    expect(withHeader({ alg: 'EdDSA', jwk })?.jwk).toEqual(JWK);
  });
});

describe('the claims', () => {
  it.each<[string, Members]>([
    ['no method', { htm: undefined }],
    ['a method that is no token', { htm: 'GET /' }],
    ['no address', { htu: undefined }],
    ['a query', { htu: 'https://api.example/v1/orders?a=b' }],
    ['an empty query', { htu: 'https://api.example/v1/orders?' }],
    ['a fragment', { htu: 'https://api.example/v1/orders#a' }],
    ['a user', { htu: 'https://user@api.example/v1/orders' }],
    ['another scheme', { htu: 'wss://api.example/v1/orders' }],
    ['no host', { htu: 'https:///v1/orders' }],
    ['a backslash for a slash', { htu: 'https://api.example\\v1' }],
    ['a relative address', { htu: '/v1/orders' }],
    ['white space', { htu: 'https://api.example/v1/orders ' }],
    ['an absolute host name with its dot', { htu: 'https://api.example./v1/orders' }],
    ['no time', { iat: undefined }],
    ['a time as text', { iat: '1800000000' }],
    ['a fraction of a second', { iat: 1_800_000_000.5 }],
    ['no identifier', { jti: undefined }],
    ['a short identifier', { jti: 'a'.repeat(15) }],
    ['a long identifier', { jti: 'a'.repeat(129) }],
    ['an identifier with other characters', { jti: `${'a'.repeat(16)}/` }],
    ['no hash of the token', { ath: undefined }],
    ['a hash with padding', { ath: `${String(CLAIMS.ath)}=` }],
    ['a nonce that is no text', { nonce: 1 }],
    ['an empty nonce', { nonce: '' }],
    ['an end of its own', { exp: 1_800_000_060 }],
    ['a later beginning', { nbf: 1_800_000_060 }],
    ['text beyond ASCII', { iss: 'ü' }],
  ])('are refused with %s', (_, members) => {
    expect(withClaims(members)).toBeUndefined();
  });

  it.each<[string, string, string, string]>([
    ['https://API.example:443/a', 'https', 'api.example', '/a'],
    ['http://api.example:80/', 'http', 'api.example', '/'],
    ['HTTPS://api.example', 'https', 'api.example', '/'],
    ['https://api.example:8443//a/../b%2f', 'https', 'api.example:8443', '//a/../b%2f'],
    ['http://[::1]:8080/a', 'http', '[::1]:8080', '/a'],
  ])('split %s without changing the path', (htu, scheme, authority, path) => {
    expect(withClaims({ htu })).toMatchObject({ origin: { scheme, authority }, path });
  });

  it('may be more than RFC 9449 knows', () => {
    expect(withClaims({ nonce: 'a.b~c', client_id: 'app' })).toMatchObject({ nonce: 'a.b~c' });
  });
});

it.each<[string, string]>([
  [
    'too long',
    ofTexts(JSON.stringify(HEADER), JSON.stringify({ ...CLAIMS, a: 'a'.repeat(MAX_DPOP_PROOF_BYTES) })),
  ],
  ['a member twice', ofTexts(`{"typ":"dpop+jwt",${JSON.stringify(HEADER).slice(1)}`, JSON.stringify(CLAIMS))],
  [
    'a claim twice, once escaped',
    ofTexts(JSON.stringify(HEADER), `{"h\\u0074m":"PUT",${JSON.stringify(CLAIMS).slice(1)}`),
  ],
  ['a short signature', ofTexts(JSON.stringify(HEADER), JSON.stringify(CLAIMS), 'A'.repeat(84))],
  [
    'a signature in another spelling',
    ofTexts(JSON.stringify(HEADER), JSON.stringify(CLAIMS), `${'A'.repeat(85)}B`),
  ],
  ['four parts', `${proof(HEADER, CLAIMS)}.AAAA`],
  ['two parts', proof(HEADER, CLAIMS).split('.').slice(0, 2).join('.')],
  ['a list of claims', ofTexts(JSON.stringify(HEADER), '[]')],
  ['nothing', ''],
])('refuses %s', (_, text) => {
  expect(parseDpopProof(text)).toBeUndefined();
});
