import { hash } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import type { RequestToSign } from '../../../src/caller/sign/request-signer.ts';
import { parsePassport } from '../../../src/protocol/passport.ts';
import { signPassport } from '../../../src/protocol/signing.ts';
import { decodeTranscript, parseTranscript, type Transcript } from '../../../src/protocol/transcript.ts';
import { verifySignature } from '../../../src/protocol/verify-signature.ts';
import {
  codeOf,
  credentialsOf,
  NOW_SECONDS,
  newEd25519Key,
  newP256Key,
  profilesOf,
  requestOf,
  routeDocument,
  type Signer,
  signerOf,
  signRequest,
} from '../../support/caller/signing.ts';

/** Verifies the signature and returns the signed transcript. */
function signedTranscript(request: RequestToSign, signer: Signer): Transcript {
  const values = credentialsOf(signRequest(request, signer));
  const bytes = decodeTranscript(values.transcript) ?? Buffer.alloc(0);
  const signature = Buffer.from(values.signature, 'base64url');
  expect(verifySignature(signer.holderKey.publicKey, bytes, signature)).toBe(true);
  const transcript = parseTranscript(bytes, 'authorization');
  if (transcript === undefined) throw new Error('not a transcript');
  return transcript;
}

const SHA256_OF_NOTHING = hash('sha256', '', 'base64url');

it.each([
  ['the proof ends with the key', 20, 20],
  ['the key ends later', 90, 60],
  ['the key has ended: the verifier says so', -1, 60],
])('%s', (_what, keySeconds, expectedSeconds) => {
  const signer = signerOf({ expiresAtMs: (NOW_SECONDS + keySeconds) * 1000 + 500 });
  expect(signRequest(requestOf(), signer).expiresAtSeconds).toBe(NOW_SECONDS + expectedSeconds);
});

describe('a signed request', () => {
  it.each([
    ['Ed25519', newEd25519Key()],
    ['ES256', newP256Key()],
  ])('makes a passport and a proof that verify: %s', (algorithm, holderKey) => {
    const signer = signerOf({ holderKey });
    const url = 'https://API.shop.example:443/v1/orders/a%20b?x=%2f..&y=%zz';
    const signed = signRequest(requestOf({ url }), signer);
    const { passport: jws, transcript } = credentialsOf(signed);
    const passport = parsePassport(jws);
    expect(passport).toMatchObject({
      keyId: 'dk_test',
      algorithm,
      claims: {
        issuer: 'https://control.shop.example/sites/shop-eu-1',
        subject: 'client:billing',
        trustDomain: 'shop.example',
        audience: 'https://api.shop.example',
        issuedAtSeconds: NOW_SECONDS,
        expiresAtSeconds: NOW_SECONDS + 60,
        keyBinding: 'software',
        holderJwk: holderKey.publicKey.jwk,
      },
    });
    if (passport === undefined) throw new Error('not a passport');
    expect(verifySignature(holderKey.publicKey, passport.signingInput, passport.signature)).toBe(true);
    expect(parseTranscript(Buffer.from(transcript, 'base64url'), 'authorization')).toEqual({
      authSite: 'shop-eu-1',
      keyId: 'dk_test',
      passportSha256: hash('sha256', jws, 'base64url'),
      issuer: 'https://control.shop.example/sites/shop-eu-1',
      subject: 'client:billing',
      audience: 'https://api.shop.example',
      routeId: 'orders',
      method: 'GET',
      scheme: 'https',
      authority: 'api.shop.example',
      target: '/v1/orders/a%20b?x=%2f..&y=%zz',
      jti: expect.stringMatching(/^[A-Za-z0-9_-]{22}$/),
      issuedAtSeconds: NOW_SECONDS,
      expiresAtSeconds: NOW_SECONDS + 60,
      contentSha256: '-',
      headers: [],
    });
    expect(signedTranscript(requestOf({ url }), signer).target).toBe(signed.url.target);
  });

  it('never signs the same jti twice', () => {
    const signer = signerOf();
    expect(signedTranscript(requestOf(), signer).jti).not.toBe(signedTranscript(requestOf(), signer).jti);
  });

  it.each([
    ['POST', 'bound', undefined, SHA256_OF_NOTHING],
    ['PUT', 'bound', '', SHA256_OF_NOTHING],
    ['PATCH', 'bound', 'abc', hash('sha256', 'abc', 'base64url')],
    ['GET', 'bound', undefined, '-'],
    ['DELETE', 'bound', '', '-'],
    ['DELETE', 'bound', 'abc', hash('sha256', 'abc', 'base64url')],
    ['POST', 'unbound', 'abc', '-'],
    ['GET', 'unbound', undefined, '-'],
  ])('%s, body %s, %p: content-sha256 %s', (method, body, content, expected) => {
    const signer = signerOf({ profiles: profilesOf(routeDocument({ method, body })) });
    const bytes = content === undefined ? undefined : Buffer.from(content);
    expect(signedTranscript(requestOf({ method, body: bytes }), signer).contentSha256).toBe(expected);
  });

  it("signs the route's headers and the caller's, sorted, and no others", () => {
    const signer = signerOf({
      profiles: profilesOf(routeDocument({ signed_headers: ['x-tenant', 'content-type'] })),
    });
    const headers = [
      { name: 'X-Tenant', value: 'a, b' },
      { name: 'Accept', value: '*/*' },
      { name: 'Content-Type', value: 'application/json' },
      { name: 'If-Match', value: '"7"' },
    ];
    const request = requestOf({ headers, signHeaders: ['If-Match', 'x-tenant'] });
    expect(signedTranscript(request, signer).headers).toEqual([
      { name: 'content-type', value: 'application/json' },
      { name: 'if-match', value: '"7"' },
      { name: 'x-tenant', value: 'a, b' },
    ]);
  });

  it.each([
    ['not given', [], 'header_missing'],
    ['given twice', ['a', 'b'], 'header_repeated'],
    ['empty', [''], 'header_invalid'],
    ['with a tab', ['a\tb'], 'header_invalid'],
    ['with a space at its end', ['a '], 'header_invalid'],
    ['not ASCII', ['\u00e9'], 'header_invalid'],
    ['with a line break', ['a\nb'], 'header_invalid'],
  ])('refuses a header to sign that is %s', (_case, values, code) => {
    const headers = values.map((value) => ({ name: 'If-Match', value }));
    const request = requestOf({ headers, signHeaders: ['if-match'] });
    expect(codeOf(() => signRequest(request, signerOf()))).toBe(code);
  });

  it.each(['x-proofgate-transcript', 'a b', '', ':path', '-x'])('refuses to sign the header %p', (name) => {
    const headers = [{ name, value: 'x' }];
    expect(codeOf(() => signRequest(requestOf({ headers, signHeaders: [name] }), signerOf()))).toBe(
      'header_invalid',
    );
  });

  it('puts the passport where the profile says', () => {
    const profiles = profilesOf(routeDocument({ passport_header: 'X-Proofgate-Passport' }));
    const request = requestOf({ headers: [{ name: 'Authorization', value: 'Bearer 1' }] });
    const signed = signRequest(request, signerOf({ profiles }));
    const [line, ...proof] = signed.headers.reveal();
    expect(line?.name).toBe('X-Proofgate-Passport');
    expect(parsePassport(line?.value ?? '')?.keyId).toBe(signed.keyId);
    expect(proof.map(({ name }) => name)).toEqual(['X-Proofgate-Transcript', 'X-Proofgate-Signature']);
  });

  it.each([
    ['on a route whose passport is there', {}, ['Bearer 1'], 'header_reserved'],
    ['that is a passport', { passport_header: 'X-Proofgate-Passport' }, ['passport x'], 'header_reserved'],
    [
      'on two lines, to sign',
      { passport_header: 'X-Proofgate-Passport', signed_headers: ['authorization'] },
      ['Bearer 1', 'Bearer 1'],
      'header_repeated',
    ],
  ])('refuses an Authorization %s', (_case, route, values, code) => {
    const headers = values.map((value) => ({ name: 'Authorization', value }));
    const profiles = profilesOf(routeDocument(route));
    expect(codeOf(() => signRequest(requestOf({ headers }), signerOf({ profiles })))).toBe(code);
  });

  it.each([0, -1, 301, 1.5, Number.NaN])('refuses a proof of %p seconds', (ttlSeconds) => {
    expect(codeOf(() => signRequest(requestOf(), signerOf({ ttlSeconds })))).toBe('ttl_out_of_range');
  });

  it.each([1, 300])('takes a proof of %p seconds', (ttlSeconds) => {
    const { issuedAtSeconds, expiresAtSeconds } = signedTranscript(requestOf(), signerOf({ ttlSeconds }));
    expect(expiresAtSeconds - issuedAtSeconds).toBe(ttlSeconds);
  });

  it('refuses what would be longer than a verifier reads', () => {
    const url = `https://api.shop.example/v1/orders/7?${'a'.repeat(7000)}`;
    expect(codeOf(() => signRequest(requestOf({ url }), signerOf()))).toBe('credentials_too_large');
  });

  it('shows the credentials only on request', () => {
    const { headers: credentials } = signRequest(requestOf(), signerOf());
    expect(String(credentials)).toBe('[redacted]');
    expect(JSON.stringify({ credentials })).toBe('{"credentials":"[redacted]"}');
    expect(Object.keys(credentials)).toEqual([]);
  });
});

describe('a passport from a broker', () => {
  const broker = newEd25519Key();
  const holderKey = newEd25519Key();
  const claims = {
    keyId: 'broker-2026',
    issuer: 'https://control.shop.example/sites/shop-eu-1',
    subject: 'client:billing',
    trustDomain: 'shop.example',
    audience: 'https://api.shop.example',
    issuedAtSeconds: NOW_SECONDS - 10,
    expiresAtSeconds: NOW_SECONDS + 100,
    keyBinding: 'software',
    holderJwk: holderKey.publicKey.jwk,
  } as const;

  it('is sent as it is, with a proof by the holder', () => {
    const jws = signPassport(claims, broker);
    const signer = signerOf({ holderKey, brokerPassport: `${jws}\n` });
    expect(credentialsOf(signRequest(requestOf(), signer)).passport).toBe(jws);
    expect(signedTranscript(requestOf(), signer)).toMatchObject({
      keyId: 'broker-2026',
      passportSha256: hash('sha256', jws, 'base64url'),
    });
  });

  it.each([
    ['issuer', { issuer: 'https://elsewhere.example' }, 'passport_mismatch'],
    ['subject', { subject: 'client:other' }, 'passport_mismatch'],
    ['trust domain', { trustDomain: 'other.example' }, 'passport_mismatch'],
    ['audience', { audience: 'https://other.example' }, 'passport_mismatch'],
    ['key binding', { keyBinding: 'attested_workload' as const }, 'passport_mismatch'],
    ['holder', { holderJwk: newEd25519Key().publicKey.jwk }, 'passport_mismatch'],
    ['end', { expiresAtSeconds: NOW_SECONDS }, 'passport_expired'],
  ])('is refused with another %s', (_claim, change, code) => {
    const brokerPassport = signPassport({ ...claims, ...change }, broker);
    expect(codeOf(() => signRequest(requestOf(), signerOf({ holderKey, brokerPassport })))).toBe(code);
  });

  it.each(['', 'a.b.c', 'Passport x'])('is refused when it is %p', (brokerPassport) => {
    expect(codeOf(() => signRequest(requestOf(), signerOf({ holderKey, brokerPassport })))).toBe(
      'passport_malformed',
    );
  });
});
