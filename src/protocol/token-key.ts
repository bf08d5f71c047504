/**
 * Keys of authorization servers, each for one algorithm: RSA beside the curves of our own keys.
 * Source: RFC 7518 sections 3.3, 3.5 and 6.3, RFC 7638.
 */
import { createPublicKey, hash, type KeyObject } from 'node:crypto';
import type { AccessTokenAlgorithm } from './access-token.ts';
import { decodeBase64url } from './base64url.ts';
import { importPublicKey } from './import-public-key.ts';
import { type PublicJwk, type PublicKey, thumbprintOf } from './public-key.ts';

export interface RsaJwk {
  readonly kty: 'RSA';
  /** Modulus, base64url. */
  readonly n: string;
  readonly e: 'AQAB';
}

export type TokenKey =
  | {
      readonly kind: 'rsa';
      readonly algorithm: 'RS256' | 'PS256';
      readonly thumbprint: string;
      readonly keyObject: KeyObject;
    }
  | {
      readonly kind: 'curve';
      readonly algorithm: 'ES256' | 'Ed25519';
      readonly thumbprint: string;
      readonly key: PublicKey;
    };

/** RFC 7638 thumbprint, SHA-256, base64url. */
export function tokenKeyThumbprint(jwk: PublicJwk | RsaJwk): string {
  if (jwk.kty !== 'RSA') return thumbprintOf(jwk);
  return hash('sha256', `{"e":"${jwk.e}","kty":"RSA","n":"${jwk.n}"}`, 'base64url');
}

const MIN_MODULUS_BYTES = 256;
const MAX_MODULUS_BYTES = 512;

/** Undefined for an invalid key, or one of another algorithm. */
export function importTokenKey(
  jwk: PublicJwk | RsaJwk,
  algorithm: AccessTokenAlgorithm,
): TokenKey | undefined {
  if (jwk.kty === 'RSA') {
    return algorithm === 'RS256' || algorithm === 'PS256' ? importRsaKey(jwk, algorithm) : undefined;
  }
  const key = importPublicKey(jwk);
  if (key === undefined || key.algorithm !== algorithm) return undefined;
  return { kind: 'curve', algorithm: key.algorithm, thumbprint: key.thumbprint, key };
}

function importRsaKey({ e, kty, n }: RsaJwk, algorithm: 'RS256' | 'PS256'): TokenKey | undefined {
  const modulus = decodeBase64url(n);
  const bytes = modulus?.byteLength ?? 0;
  // The highest bit is set, so that the number of bytes is that of the key.
  const isSound =
    bytes >= MIN_MODULUS_BYTES && bytes <= MAX_MODULUS_BYTES && ((modulus?.[0] ?? 0) & 0x80) !== 0;
  if (!isSound) return undefined;
  try {
    const keyObject = createPublicKey({ key: { kty, n, e }, format: 'jwk' });
    return { kind: 'rsa', algorithm, thumbprint: tokenKeyThumbprint({ e, kty, n }), keyObject };
  } catch {
    return undefined;
  }
}
