/**
 * The one function that decides whether a signature holds, and its counterpart that makes one.
 * Its answers on Wycheproof's and CCTV's cases are pinned by test/protocol/signature.vectors.test.ts.
 */
import { type KeyObject, sign, verify } from 'node:crypto';
import sodium from 'sodium-native';
import type { PublicKey, SignatureAlgorithm } from './public-key.ts';

/** Ed25519: R || S (RFC 8032 section 5.1.6). ES256: r || s (RFC 7518 section 3.4). Both 64 bytes. */
export const SIGNATURE_BYTES = 64;

/**
 * Ed25519 by libsodium, which takes about 0.6 of OpenSSL's time (docs/performance.md); ES256 by OpenSSL.
 * Never throws: whatever a library refuses is false.
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

/** @throws TypeError when the private key is not of the algorithm. */
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
