/**
 * Reads `Content-Digest` (RFC 9530) as a signature may cover it: one SHA-256, and beside it at most one SHA-512.
 * Source: docs/design/protocol.md "HTTP Message Signatures".
 */
import { hash } from 'node:crypto';
import { parseByteSequences } from './structured-fields.ts';

export interface ContentDigest {
  /** base64url. */
  readonly sha256: string;
  readonly sha512: string | undefined;
}

/** Undefined when the value is not canonical, has no SHA-256, or has a digest that is not verified here. */
export function parseContentDigest(value: string): ContentDigest | undefined {
  const digests = parseByteSequences(value);
  const sha256 = digests?.get('sha-256');
  const sha512 = digests?.get('sha-512');
  if (digests === undefined || sha256?.length !== 32) return undefined;
  if (digests.size !== (sha512 === undefined ? 1 : 2) || (sha512 !== undefined && sha512.length !== 64)) {
    return undefined;
  }
  return { sha256: sha256.toString('base64url'), sha512: sha512?.toString('base64url') };
}

export function digestMatches({ sha256, sha512 }: ContentDigest, body: Uint8Array): boolean {
  if (hash('sha256', body, 'base64url') !== sha256) return false;
  return sha512 === undefined || hash('sha512', body, 'base64url') === sha512;
}
