/** Fixed public test keys, and drafts of a passport and a transcript of which tests change one thing. */
import { createPrivateKey } from 'node:crypto';
import { PASSPORT_TYPE, passportSha256 } from '../../../src/protocol/passport.ts';
import { signMessage } from '../../../src/protocol/signature.ts';
import { type SigningKey, signingKeyOf } from '../../../src/protocol/signing.ts';
import type { Transcript } from '../../../src/protocol/transcript.ts';

/** PKCS#8 of an Ed25519 key up to its 32 bytes (RFC 8410 section 7). */
const ED25519_PKCS8_PREFIX = Buffer.from('302e020100300506032b657004220420', 'hex');

/** @param seed the 32 bytes that RFC 8032 calls the secret key, in hexadecimal */
export function ed25519KeyOfSeed(seed: string): SigningKey {
  const der = Buffer.concat([ED25519_PKCS8_PREFIX, Buffer.from(seed, 'hex')]);
  return signingKeyOf(createPrivateKey({ key: der, format: 'der', type: 'pkcs8' }));
}

/** RFC 8032 section 7.1, TEST 1 and TEST 2. */
export const TEST_1 = ed25519KeyOfSeed('9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60');
export const TEST_2 = ed25519KeyOfSeed('4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb');

/** RFC 6979 appendix A.2.5. */
export const P256_KEY = signingKeyOf(
  createPrivateKey({
    format: 'jwk',
    key: {
      kty: 'EC',
      crv: 'P-256',
      d: hexToBase64url('c9afa9d845ba75166b5c215767b1d6934e50c3db36e89b127b8a622b120f6721'),
      x: hexToBase64url('60fed4ba255a9d31c961eb74c6356d68c049b8923b61fa6ce669622e60f29fb6'),
      y: hexToBase64url('7903fe1008b8bc99a41ae9e95628bc64f2f1b20c2d7e9f5177a3c294d4462299'),
    },
  }),
);

export function hexToBase64url(hex: string): string {
  return Buffer.from(hex, 'hex').toString('base64url');
}

export const NOW_SECONDS = 1_800_000_000;

/** JSON to be changed at will. */
export type JsonDraft = { [name: string]: unknown };

export function headerDraft(): JsonDraft {
  return { typ: PASSPORT_TYPE, alg: 'Ed25519', kid: 'broker-1' };
}

export function claimsDraft(): JsonDraft {
  return {
    iss: 'https://broker.example',
    sub: 'spiffe://shop.example/ns/prod/sa/billing',
    trust_domain: 'shop.example',
    aud: 'https://api.shop.example',
    iat: NOW_SECONDS,
    exp: NOW_SECONDS + 300,
    nbf: NOW_SECONDS,
    key_binding: 'attested_workload',
    cnf: { jwk: { ...TEST_2.publicKey.jwk } },
    jti: 'passport-1',
    provenance: { cluster: 'eu-1' },
    context: { team: 'billing' },
  };
}

/** A compact JWS over these texts, JSON or not. */
export function jwsOfTexts(header: string, claims: string, key: SigningKey = TEST_1): string {
  const input = `${Buffer.from(header).toString('base64url')}.${Buffer.from(claims).toString('base64url')}`;
  const signature = signMessage(key.publicKey.algorithm, key.privateKey, Buffer.from(input));
  return `${input}.${signature.toString('base64url')}`;
}

export function jwsOf(header: unknown, claims: unknown, key?: SigningKey): string {
  return jwsOfTexts(JSON.stringify(header), JSON.stringify(claims), key);
}

export const VALID_JWS = jwsOf(headerDraft(), claimsDraft());

export const TRANSCRIPT: Transcript = {
  authSite: 'shop-eu',
  keyId: 'broker-1',
  passportSha256: passportSha256(VALID_JWS),
  issuer: 'https://broker.example',
  subject: 'spiffe://shop.example/ns/prod/sa/billing',
  audience: 'https://api.shop.example',
  routeId: 'orders-create',
  method: 'POST',
  scheme: 'https',
  authority: 'api.shop.example',
  target: '/v1/orders?dry-run=1',
  jti: 'AAAAAAAAAAAAAAAAAAAAAA',
  issuedAtSeconds: NOW_SECONDS,
  expiresAtSeconds: NOW_SECONDS + 60,
  contentSha256: '47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU',
  headers: [
    { name: 'content-type', value: 'application/json' },
    { name: 'x-tenant', value: 'acme, inc' },
  ],
};
