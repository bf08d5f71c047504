/**
 * Public keys, held to one strict rule wherever they come from: a passport's `cnf`, a bundle, an enrollment.
 *
 * Ed25519: canonical encoding, on the curve, in the prime-order subgroup and not its identity. OpenSSL
 * accepts small-order and mixed-order points, for which one signature can fit many messages or which
 * verifiers judge differently. P-256: on the curve. Source: RFC 8032, RFC 8037, RFC 7518 section 6.2,
 * docs/bundle.md "Content".
 */
import { createPublicKey, hash, type KeyObject } from 'node:crypto';
import { Point } from '@noble/ed25519';
import { decodeBase64url, isBase64urlOf } from './base64url.ts';
import { hasExactMembers, isJsonObject } from './strict-json.ts';

export type SignatureAlgorithm = 'Ed25519' | 'ES256';

export type PublicJwk =
  | { readonly kty: 'OKP'; readonly crv: 'Ed25519'; readonly x: string }
  | { readonly kty: 'EC'; readonly crv: 'P-256'; readonly x: string; readonly y: string };

/** A key that has passed the rule above and is ready to verify with. */
export interface PublicKey {
  readonly algorithm: SignatureAlgorithm;
  readonly jwk: PublicJwk;
  /** RFC 7638 thumbprint, SHA-256, base64url: 43 characters. */
  readonly thumbprint: string;
  readonly keyObject: KeyObject;
}

const COORDINATE_BYTES = 32;

/**
 * Reads the shape of a public JWK: members `kty`, `crv`, `x` (and `y`) only, canonical coordinates.
 * Cheap, so that it may run on input nobody has signed; undefined when the shape is wrong.
 */
export function parsePublicJwk(value: unknown): PublicJwk | undefined {
  if (!isJsonObject(value)) return undefined;
  const { kty, crv, x, y } = value;
  if (typeof x !== 'string' || !isBase64urlOf(x, COORDINATE_BYTES)) return undefined;
  if (kty === 'OKP' && crv === 'Ed25519' && hasExactMembers(value, ['kty', 'crv', 'x'])) {
    return { kty, crv, x };
  }
  if (kty === 'EC' && crv === 'P-256' && hasExactMembers(value, ['kty', 'crv', 'x', 'y'])) {
    if (typeof y === 'string' && isBase64urlOf(y, COORDINATE_BYTES)) return { kty, crv, x, y };
  }
  return undefined;
}

export function algorithmOf(jwk: PublicJwk): SignatureAlgorithm {
  return jwk.kty === 'OKP' ? 'Ed25519' : 'ES256';
}

/** Whether the two are the very same key; both in canonical spelling. */
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

/**
 * Checks the point and makes the key ready to verify with; undefined when the key is refused.
 * Costs about a millisecond for Ed25519: only for keys that somebody trusted has vouched for.
 */
export function importPublicKey(jwk: PublicJwk): PublicKey | undefined {
  if (jwk.kty === 'OKP' && !isFullOrderEd25519Point(jwk.x)) return undefined;
  try {
    // OpenSSL refuses an EC point that is not on the curve.
    const keyObject = createPublicKey({ key: { ...jwk }, format: 'jwk' });
    return { algorithm: algorithmOf(jwk), jwk, thumbprint: thumbprintOf(jwk), keyObject };
  } catch {
    return undefined;
  }
}

function isFullOrderEd25519Point(x: string): boolean {
  const bytes = decodeBase64url(x);
  if (bytes === undefined) return false;
  try {
    // Strict decoding (no ZIP-215): refuses y >= p, x = 0 with the sign bit set, points off the curve.
    const point = Point.fromBytes(new Uint8Array(bytes), false);
    return !point.isSmallOrder() && point.isTorsionFree();
  } catch {
    return false;
  }
}

/** Parses and checks in one go; undefined when either refuses. */
export function importPublicJwk(value: unknown): PublicKey | undefined {
  const jwk = parsePublicJwk(value);
  return jwk === undefined ? undefined : importPublicKey(jwk);
}
