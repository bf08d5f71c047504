/**
 * Public keys as JWK, their thumbprints, and the type of keys whose point is checked. `import-public-key.ts` checks points
 * of others; this module needs no library, because signers use it.
 * Source: RFC 7518 section 6.2, RFC 7638, RFC 8037.
 */
import { createPublicKey, hash, type KeyObject } from 'node:crypto';
import { isBase64urlOf32Bytes } from './base64url.ts';
import { hasExactMembers, isJsonObject } from './strict-json.ts';

export type SignatureAlgorithm = 'Ed25519' | 'ES256';

export type PublicJwk =
  | { readonly kty: 'OKP'; readonly crv: 'Ed25519'; readonly x: string }
  | { readonly kty: 'EC'; readonly crv: 'P-256'; readonly x: string; readonly y: string };

/** A key that has passed the rule of `import-public-key.ts` and is ready for verification. */
export interface PublicKey {
  readonly algorithm: SignatureAlgorithm;
  readonly jwk: PublicJwk;
  /** RFC 7638 thumbprint, SHA-256, base64url: 43 characters. */
  readonly thumbprint: string;
  /** Ed25519: the point's 32 bytes (RFC 8032 section 5.1.2). ES256: empty. */
  readonly rawPoint: Buffer;
  /** The key for node:crypto, created lazily. */
  readonly keyObject: KeyObject;
}

/**
 * Checks the shape of a public JWK: members `kty`, `crv`, `x` (and `y`) only, canonical coordinates. Cheap, so that it
 * may run on unauthenticated input; undefined when the shape is wrong.
 */
export function parsePublicJwk(value: unknown): PublicJwk | undefined {
  if (!isJsonObject(value)) return undefined;
  const { kty, crv, x, y } = value;
  if (typeof x !== 'string' || !isBase64urlOf32Bytes(x)) return undefined;
  if (kty === 'OKP' && crv === 'Ed25519' && hasExactMembers(value, ['kty', 'crv', 'x'])) {
    return { kty, crv, x };
  }
  if (kty === 'EC' && crv === 'P-256' && hasExactMembers(value, ['kty', 'crv', 'x', 'y'])) {
    if (typeof y === 'string' && isBase64urlOf32Bytes(y)) return { kty, crv, x, y };
  }
  return undefined;
}

export function algorithmOf(jwk: PublicJwk): SignatureAlgorithm {
  return jwk.kty === 'OKP' ? 'Ed25519' : 'ES256';
}

/** Whether the two are the same key; both must be canonical. */
export function sameJwk(a: PublicJwk, b: PublicJwk): boolean {
  return a.x === b.x && (a.kty === 'EC' ? b.kty === 'EC' && a.y === b.y : b.kty === 'OKP');
}

/** RFC 7638 thumbprint (for Ed25519: RFC 8037 section 2), SHA-256, base64url. */
export function thumbprintOf(jwk: PublicJwk): string {
  const members =
    jwk.kty === 'OKP'
      ? `{"crv":"Ed25519","kty":"OKP","x":"${jwk.x}"}`
      : `{"crv":"P-256","kty":"EC","x":"${jwk.x}","y":"${jwk.y}"}`;
  return hash('sha256', members, 'base64url');
}

/** A bundle holds many keys and verifies with few, so the OpenSSL key object is created on demand. */
export class CheckedKey implements PublicKey {
  readonly algorithm: SignatureAlgorithm;
  readonly jwk: PublicJwk;
  readonly thumbprint: string;
  readonly rawPoint: Buffer;
  #keyObject: KeyObject | undefined;

  constructor(jwk: PublicJwk, rawPoint: Buffer, keyObject?: KeyObject) {
    this.algorithm = algorithmOf(jwk);
    this.jwk = jwk;
    this.thumbprint = thumbprintOf(jwk);
    this.rawPoint = rawPoint;
    this.#keyObject = keyObject;
  }

  get keyObject(): KeyObject {
    this.#keyObject ??= createPublicKey({ key: { ...this.jwk }, format: 'jwk' });
    return this.#keyObject;
  }
}

const NO_BYTES = Buffer.alloc(0);

export function importP256Key(jwk: PublicJwk): PublicKey | undefined {
  try {
    // OpenSSL rejects a point that is not on the curve.
    return new CheckedKey(jwk, NO_BYTES, createPublicKey({ key: { ...jwk }, format: 'jwk' }));
  } catch {
    return undefined;
  }
}
