/** Reads private key files: PKCS#8 PEM (RFC 5958, RFC 7468) that only the owner can read. */
import { parseSigningKey, type SigningKey, SigningKeyError } from '../../protocol/signing.ts';
import { isJsonObject, parseStrictJson, StrictJsonError } from '../../protocol/strict-json.ts';
import { usageError } from '../program/errors.ts';
import { readInputBytes } from './input-files.ts';

export const MAX_KEY_FILE_BYTES = 16 * 1024;

/**
 * Reads an Ed25519 or P-256 private key: PKCS#8 PEM, not encrypted, mode 0600 or narrower.
 * @throws CliError `public_key_where_private_expected`, `private_key_invalid`, or as `readInputBytes`
 */
export async function readSigningKeyFile(path: string): Promise<SigningKey> {
  const pem = await readInputBytes(path, { maxBytes: MAX_KEY_FILE_BYTES, secret: true });
  try {
    return parseSigningKey(pem);
  } catch (error) {
    if (!(error instanceof SigningKeyError)) throw error;
    if (holdsPublicKey(pem.toString('latin1'))) {
      throw usageError('public_key_where_private_expected', `${path} holds a public key, not a private one`);
    }
    throw usageError('private_key_invalid', `${path}: ${error.message}`);
  } finally {
    pem.fill(0);
  }
}

function holdsPublicKey(content: string): boolean {
  if (/-----BEGIN (?:EC )?PUBLIC KEY-----/.test(content)) return true;
  const jwk = parseObject(content);
  return jwk !== undefined && 'kty' in jwk && !('d' in jwk);
}

/** The members of a JSON object; undefined for other texts. */
export function parseObject(content: string): Record<string, unknown> | undefined {
  try {
    const value = parseStrictJson(content);
    return isJsonObject(value) ? { ...value } : undefined;
  } catch (error) {
    if (error instanceof StrictJsonError) return undefined;
    throw error;
  }
}
