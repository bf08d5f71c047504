/** The only module that creates signatures. `verify-signature.ts` verifies them. */
import { type KeyObject, sign } from 'node:crypto';
import type { SignatureAlgorithm } from './public-key.ts';

/** Ed25519: R || S (RFC 8032 section 5.1.6). ES256: r || s (RFC 7518 section 3.4). Both 64 bytes. */
export const SIGNATURE_BYTES = 64;

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
