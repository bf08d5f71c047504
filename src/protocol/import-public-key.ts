/**
 * Imports public keys under one strict rule, whether from a passport's `cnf`, a bundle or an enrollment.
 *
 * Ed25519: canonical encoding, on the curve, in the prime-order subgroup and not its identity. OpenSSL accepts
 * small-order and mixed-order points. With those, one signature can fit many messages, or verifiers disagree. P-256: on
 * the curve.
 * Source: RFC 8032, RFC 8037, RFC 7518 section 6.2, docs/design/bundle.md "Content".
 */
import sodium from 'sodium-native';
import { decodeBase64url } from './base64url.ts';
import { CheckedKey, importP256Key, type PublicJwk, type PublicKey, parsePublicJwk } from './public-key.ts';

const COORDINATE_BYTES = 32;

/** Checks the point and returns a key for verification; undefined when the point is invalid. */
export function importPublicKey(jwk: PublicJwk): PublicKey | undefined {
  return jwk.kty === 'OKP' ? importEd25519Key(jwk) : importP256Key(jwk);
}

function importEd25519Key(jwk: PublicJwk & { kty: 'OKP' }): PublicKey | undefined {
  const point = decodeBase64url(jwk.x);
  if (point?.byteLength !== COORDINATE_BYTES) return undefined;
  // Rejects y >= p, x = 0 with the sign bit set, points off the curve, of small and of mixed order.
  return sodium.crypto_core_ed25519_is_valid_point(point) ? new CheckedKey(jwk, point) : undefined;
}

/** Parses and imports a JWK; undefined when either fails. */
export function importPublicJwk(value: unknown): PublicKey | undefined {
  const jwk = parsePublicJwk(value);
  return jwk === undefined ? undefined : importPublicKey(jwk);
}
