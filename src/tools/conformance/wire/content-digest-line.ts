/** Value of `Content-Digest` (RFC 9530). */
import { hash } from 'node:crypto';

export function sha256DigestOf(body: Uint8Array): string {
  return `sha-256=:${hash('sha256', body, 'base64')}:`;
}
