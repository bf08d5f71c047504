/** Reads public key files: JWK (RFC 7517) or PEM. */
import { createPublicKey } from 'node:crypto';
import { importPublicJwk } from '../../protocol/import-public-key.ts';
import type { PublicKey } from '../../protocol/public-key.ts';
import { usageError } from '../program/errors.ts';
import { readInputText } from './input-files.ts';
import { MAX_KEY_FILE_BYTES, parseObject } from './key-files.ts';

/**
 * Reads a JWK or a PEM (`PUBLIC KEY`). A JWK may have `kid`, `alg` and `use`; they have no effect. A key is identified by
 * its thumbprint, so a `kid` in a file cannot impersonate another key.
 * @throws CliError `private_key_where_public_expected`, `public_key_invalid`, or as `readInputText`
 */
export async function readPublicKeyFile(path: string): Promise<PublicKey> {
  const content = await readInputText(path, MAX_KEY_FILE_BYTES);
  const jwk = content.includes('-----BEGIN') ? jwkOfPem(content) : parseObject(content);
  if (/-----BEGIN [A-Z ]*PRIVATE KEY-----/.test(content) || (jwk !== undefined && 'd' in jwk)) {
    throw usageError('private_key_where_public_expected', `${path} holds a private key, not a public one`);
  }
  const { kid, alg, use, ...key } = jwk ?? {};
  const publicKey = importPublicJwk(key);
  if (publicKey === undefined) {
    throw usageError('public_key_invalid', `${path} is not a public key of Ed25519 or P-256, as JWK or PEM`);
  }
  if ((kid !== undefined && typeof kid !== 'string') || (use !== undefined && use !== 'sig')) {
    throw usageError('public_key_invalid', `${path}: kid must be a string, use must be sig`);
  }
  if (alg !== undefined && alg !== publicKey.algorithm && !(alg === 'EdDSA' && key.crv === 'Ed25519')) {
    throw usageError('public_key_invalid', `${path}: alg is not the algorithm of the key`);
  }
  return publicKey;
}

function jwkOfPem(content: string): Record<string, unknown> | undefined {
  try {
    return { ...createPublicKey({ key: content, format: 'pem' }).export({ format: 'jwk' }) };
  } catch {
    return undefined;
  }
}
