/**
 * Computes the identifier under which the store records a proof's `jti`.
 * Source: docs/protocol.md "Replay".
 */
import { hash } from 'node:crypto';

/**
 * base64url SHA-256 (43 characters) over the lines `proofgate-jti-v1`, Auth Site, holder-key thumbprint (RFC 7638) and
 * `jti`, each ended by LF. No part can contain an LF (docs/protocol.md "Transcript"), so different parts never give the
 * same lines.
 */
export function replayIdentifier(authSite: string, holderThumbprint: string, jti: string): string {
  return hash('sha256', `proofgate-jti-v1\n${authSite}\n${holderThumbprint}\n${jti}\n`, 'base64url');
}
