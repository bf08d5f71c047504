/**
 * Verifies the signature of an SVID's key over the signed text. The key decides the algorithm: P-256 ES256, P-384 ES384,
 * Ed25519, RSA PS256 with a salt of 32 bytes (RFC 7518 section 3.5).
 */
import { constants, hash, type KeyObject, verify } from 'node:crypto';
import { importPublicJwk } from '../protocol/import-public-key.ts';
import type { PublicKey } from '../protocol/public-key.ts';
import { verifySignature } from '../protocol/verify-signature.ts';

const MIN_RSA_BITS = 2048;
const PS256_SALT_BYTES = 32;
const ES384_SIGNATURE_BYTES = 96;

export function verifySvidSignature(key: KeyObject, text: Uint8Array, signature: Uint8Array): boolean {
  const holder = asHolderKey(key);
  if (holder !== undefined) return verifySignature(holder, text, signature);
  const { asymmetricKeyType: type, asymmetricKeyDetails: details } = key;
  try {
    if (type === 'rsa' && (details?.modulusLength ?? 0) >= MIN_RSA_BITS) {
      const padding = constants.RSA_PKCS1_PSS_PADDING;
      return verify('sha256', text, { key, padding, saltLength: PS256_SALT_BYTES }, signature);
    }
    if (type === 'ec' && details?.namedCurve === 'secp384r1' && signature.length === ES384_SIGNATURE_BYTES) {
      return verify('sha384', text, { key, dsaEncoding: 'ieee-p1363' }, signature);
    }
  } catch {
    return false;
  }
  return false;
}

/** Converts the key to a holder key; undefined when it is neither Ed25519 nor P-256, or its point is invalid. */
export function asHolderKey(key: KeyObject): PublicKey | undefined {
  const type = key.asymmetricKeyType;
  return type === 'ed25519' || type === 'ec' ? importPublicJwk(jwkOf(key)) : undefined;
}

/** RFC 7638 section 3.2: required members in lexicographic order. */
const THUMBPRINT_MEMBERS: { readonly [kty: string]: readonly string[] } = {
  EC: ['crv', 'kty', 'x', 'y'],
  OKP: ['crv', 'kty', 'x'],
  RSA: ['e', 'kty', 'n'],
};

/** RFC 7638 thumbprint of any key that an SVID may have; undefined for a key without a JWK form. */
export function keyThumbprint(key: KeyObject): string | undefined {
  const jwk = jwkOf(key);
  const members = THUMBPRINT_MEMBERS[jwk?.kty ?? ''];
  if (jwk === undefined || members === undefined) return undefined;
  return hash(
    'sha256',
    JSON.stringify(Object.fromEntries(members.map((name) => [name, jwk[name]]))),
    'base64url',
  );
}

function jwkOf(key: KeyObject) {
  try {
    return key.export({ format: 'jwk' });
  } catch {
    return undefined;
  }
}
