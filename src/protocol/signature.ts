/**
 * Verifies and creates signatures; the only place that does. test/protocol/signature.vectors.test.ts pins its results
 * on the cases of Wycheproof and CCTV.
 */
import { type KeyObject, sign, verify } from 'node:crypto';
import sodium from 'sodium-native';
import type { PublicKey, SignatureAlgorithm } from './public-key.ts';

/** Ed25519: R || S (RFC 8032 section 5.1.6). ES256: r || s (RFC 7518 section 3.4). Both 64 bytes. */
export const SIGNATURE_BYTES = 64;

/**
 * Uses libsodium for Ed25519, which takes about 0.6 of OpenSSL's time (docs/performance.md), and OpenSSL for ES256.
 * Never throws: a library's error results in false.
 */
export function verifySignature(key: PublicKey, message: Uint8Array, signature: Uint8Array): boolean {
  if (signature.byteLength !== SIGNATURE_BYTES) return false;
  try {
    return key.algorithm === 'Ed25519'
      ? sodium.crypto_sign_verify_detached(signature, message, key.rawPoint)
      : verify('sha256', message, { key: key.keyObject, dsaEncoding: 'ieee-p1363' }, signature);
  } catch {
    return false;
  }
}

/** @throws TypeError when the private key does not match the algorithm. */
export function signMessage(
  algorithm: SignatureAlgorithm,
  privateKey: KeyObject,
  message: Uint8Array,
): Buffer {
  if (!isKeyOf(algorithm, privateKey)) throw new TypeError(`not a private key for ${algorithm}`);
  return algorithm === 'Ed25519'
    ? sign(null, message, privateKey)
    : sign('sha256', message, { key: privateKey, dsaEncoding: 'ieee-p1363' });
}

/** OpenSSL would sign with any EC key under either name. */
function isKeyOf(
  algorithm: SignatureAlgorithm,
  { asymmetricKeyType, asymmetricKeyDetails }: KeyObject,
): boolean {
  return algorithm === 'Ed25519'
    ? asymmetricKeyType === 'ed25519'
    : asymmetricKeyType === 'ec' && asymmetricKeyDetails?.namedCurve === 'prime256v1';
}
