/**
 * The only module that verifies signatures. test/protocol/signature.vectors.test.ts pins its results on the cases of
 * Wycheproof and CCTV.
 */
import { constants, verify } from 'node:crypto';
import sodium from 'sodium-native';
import type { PublicKey } from './public-key.ts';
import { SIGNATURE_BYTES } from './signature.ts';
import type { TokenKey } from './token-key.ts';

/**
 * Uses libsodium for Ed25519, which takes about 0.6 of OpenSSL's time (docs/operate/performance.md), and OpenSSL for ES256.
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

/** RSASSA-PSS with a salt of the hash's length (RFC 7518 section 3.5). */
const PSS = { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: constants.RSA_PSS_SALTLEN_DIGEST };

/** Whether a key of an authorization server signed the message. Never throws. */
export function verifyTokenSignature(key: TokenKey, message: Uint8Array, signature: Uint8Array): boolean {
  if (key.kind === 'curve') return verifySignature(key.key, message, signature);
  try {
    const padding = key.algorithm === 'PS256' ? PSS : { padding: constants.RSA_PKCS1_PADDING };
    return verify('sha256', message, { key: key.keyObject, ...padding }, signature);
  } catch {
    return false;
  }
}
