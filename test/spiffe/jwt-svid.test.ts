/** JWT-SVID sections 2 to 4, and what a broker demands beyond them. Each case has one fault. */
import { describe, expect, test } from '@jest/globals';
import { generateKeyPair, SignJWT } from 'jose';
import { verifyJwtSvid } from '../../src/spiffe/jwt-svid.ts';
import { bundlesOf, SpiffeAuthority } from '../support/fakes/spiffe-authority.ts';

const AUDIENCE = 'https://broker.example#jkt=thumbprint';
const ID = 'spiffe://shop.example/orders';
const authority = SpiffeAuthority.create('shop.example');
const partner = SpiffeAuthority.create('partner.example');
const bundles = bundlesOf(authority, partner);
const nowSeconds = Math.floor(Date.now() / 1000);

async function codeOf(token: string, nowMs = Date.now()): Promise<string> {
  const result = await verifyJwtSvid(token, { audience: AUDIENCE, bundles, nowMs });
  return result.kind === 'svid' ? 'svid' : result.code;
}

test('a JWT-SVID for this audience alone is accepted', async () => {
  const token = await authority.issueJwtSvid(ID, AUDIENCE, { exp: nowSeconds + 60 });
  const result = await verifyJwtSvid(token, { audience: AUDIENCE, bundles, nowMs: Date.now() });
  const notAfterMs = (nowSeconds + 60) * 1000;
  expect(result).toEqual({ kind: 'svid', spiffeId: ID, trustDomain: 'shop.example', notAfterMs });
});

test('an audience as text in place of a list is accepted', async () => {
  expect(await codeOf(await authority.issueJwtSvid(ID, AUDIENCE, { aud: AUDIENCE }))).toBe('svid');
});

test.each([
  ['without an audience', { aud: undefined }, {}, 'jwt_svid_audience'],
  ['with an empty list of audiences', { aud: [] }, {}, 'jwt_svid_audience'],
  ['for another service', { aud: ['https://other.example'] }, {}, 'jwt_svid_audience'],
  ['for a second service as well', { aud: [AUDIENCE, 'https://other.example'] }, {}, 'jwt_svid_audience'],
  ['with the audience twice', { aud: [AUDIENCE, AUDIENCE] }, {}, 'jwt_svid_audience'],
  ['for another thumbprint', { aud: ['https://broker.example#jkt=other'] }, {}, 'jwt_svid_audience'],
  ['without an end', { exp: undefined }, {}, 'jwt_svid_claims'],
  ['with an end in words', { exp: '9999999999' }, {}, 'jwt_svid_claims'],
  ['that has expired', { exp: nowSeconds - 1 }, {}, 'svid_expired'],
  ['that is not valid yet', { nbf: nowSeconds + 60 }, {}, 'svid_not_yet_valid'],
  ['without a subject', { sub: undefined }, {}, 'svid_id'],
  ["with a subject that is SPIRE's", { sub: 'spiffe://shop.example/spire/agent/x' }, {}, 'svid_reserved_id'],
  ['with a subject of an unusual spelling', { sub: 'spiffe://shop.example/a/../b' }, {}, 'svid_id'],
  ['of an unknown trust domain', { sub: 'spiffe://other.example/orders' }, {}, 'trust_domain_unknown'],
  ['of another trust domain', { sub: 'spiffe://partner.example/orders' }, {}, 'jwt_svid_key_unknown'],
  ['of an unknown key', {}, { kid: 'unknown' }, 'jwt_svid_key_unknown'],
  ['without a key', {}, { kid: undefined }, 'jwt_svid_header'],
  ['that is a WIT-SVID', {}, { typ: 'wit+jwt' }, 'jwt_svid_header'],
  ['that is an access token', {}, { typ: 'at+jwt' }, 'jwt_svid_header'],
  ['with its key in the header', {}, { jwk: {} }, 'jwt_svid_header'],
  ['with an address of keys', {}, { jku: 'https://evil.example' }, 'jwt_svid_header'],
  ['with an unknown header member', {}, { cty: 'JWT' }, 'jwt_svid_header'],
] as const)('a token %s is refused', async (_name, claims, header, code) => {
  expect(await codeOf(await authority.issueJwtSvid(ID, AUDIENCE, claims, header))).toBe(code);
});

describe('a forged token', () => {
  test("signed with another key under the authority's kid is refused", async () => {
    const { privateKey } = await generateKeyPair('ES256');
    const token = await new SignJWT({ sub: ID, aud: AUDIENCE, exp: nowSeconds + 60 })
      .setProtectedHeader({ alg: 'ES256', kid: authority.kid })
      .sign(privateKey);
    expect(await codeOf(token)).toBe('jwt_svid_signature');
  });

  test.each(['none', 'HS256', 'EdDSA', 'RS256', 'ES384'])('with algorithm %s is refused', async (alg) => {
    const [, claims = ''] = (await authority.issueJwtSvid(ID, AUDIENCE)).split('.');
    const header = Buffer.from(JSON.stringify({ alg, kid: authority.kid })).toString('base64url');
    expect(await codeOf(`${header}.${claims}.AAAA`)).toBe('jwt_svid_header');
  });

  test('with other claims under the old signature is refused', async () => {
    const [header, , signature] = (await authority.issueJwtSvid(ID, AUDIENCE)).split('.');
    const claims = { sub: 'spiffe://shop.example/admin', aud: AUDIENCE, exp: nowSeconds + 60 };
    const forged = Buffer.from(JSON.stringify(claims)).toString('base64url');
    expect(await codeOf(`${header}.${forged}.${signature}`)).toBe('jwt_svid_signature');
  });

  test('that names a claim twice is refused', async () => {
    const [header, , signature] = (await authority.issueJwtSvid(ID, AUDIENCE)).split('.');
    const claims = Buffer.from(`{"sub":"${ID}","sub":"${ID}"}`).toString('base64url');
    expect(await codeOf(`${header}.${claims}.${signature}`)).toBe('svid_malformed');
  });

  test.each(['', 'a', 'a.b', 'a.b.c', 'a.b.c.d', '..', 'e30.e30.', `${'a'.repeat(20_000)}.e30.AAAA`])(
    'that is no token (case %#) is refused',
    async (token) => {
      expect(await codeOf(token)).toBe('svid_malformed');
    },
  );

  test('in another spelling of the signature is refused', async () => {
    const token = await authority.issueJwtSvid(ID, AUDIENCE);
    expect(await codeOf(`${token}=`)).toBe('svid_malformed');
    expect(await codeOf(` ${token}`)).toBe('svid_malformed');
  });
});

test('a token is refused from the moment of its end', async () => {
  const token = await authority.issueJwtSvid(ID, AUDIENCE, { exp: nowSeconds + 60 });
  expect(await codeOf(token, (nowSeconds + 60) * 1000 - 1)).toBe('svid');
  expect(await codeOf(token, (nowSeconds + 60) * 1000)).toBe('svid_expired');
  expect(await codeOf(token, Number.NaN)).toBe('svid_expired');
});
