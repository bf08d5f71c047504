/**
 * Encrypts a challenge for storage on disk while the outcome of its submission is unknown. With it the client can repeat the
 * same submission after a crash, so that a lost response does not cause a second enrollment. The cipher is AES-256-GCM, the
 * key is derived from the private key (HKDF, RFC 5869): a program that can decrypt the challenge could answer it anyway.
 */
import { createCipheriv, createDecipheriv, hkdfSync, type KeyObject, randomBytes } from 'node:crypto';
import { decodeBase64url } from '../../protocol/base64url.ts';
import { SecretText } from './secret-text.ts';

const CIPHER = 'aes-256-gcm';
const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** @param boundTo associated data; the same value is required to open it */
export function sealChallenge(challenge: SecretText, privateKey: KeyObject, boundTo: string): string {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(CIPHER, sealingKey(privateKey), nonce).setAAD(Buffer.from(boundTo));
  const sealed = [nonce, cipher.update(challenge.reveal(), 'latin1'), cipher.final(), cipher.getAuthTag()];
  return Buffer.concat(sealed).toString('base64url');
}

/** Undefined when it was sealed with another key or for another `boundTo`. */
export function openChallenge(
  sealed: string,
  privateKey: KeyObject,
  boundTo: string,
): SecretText | undefined {
  const bytes = decodeBase64url(sealed);
  if (bytes === undefined || bytes.length <= NONCE_BYTES + TAG_BYTES) return undefined;
  const nonce = bytes.subarray(0, NONCE_BYTES);
  const decipher = createDecipheriv(CIPHER, sealingKey(privateKey), nonce, { authTagLength: TAG_BYTES });
  decipher.setAAD(Buffer.from(boundTo)).setAuthTag(bytes.subarray(-TAG_BYTES));
  try {
    const opened = [decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()];
    return new SecretText(Buffer.concat(opened).toString('latin1'));
  } catch {
    return undefined;
  }
}

function sealingKey(privateKey: KeyObject): Uint8Array {
  const der = privateKey.export({ type: 'pkcs8', format: 'der' });
  try {
    return new Uint8Array(hkdfSync('sha256', der, '', 'proofgate-sealed-challenge-v1', KEY_BYTES));
  } finally {
    der.fill(0);
  }
}
