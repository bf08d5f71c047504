/**
 * The identifier under which a proof's `jti` is remembered.
 * Source: docs/protocol.md "Replay".
 */
import { hash } from 'node:crypto';

/**
 * base64url SHA-256 (43 characters) over the lines `proofgate-jti-v1`, Auth Site, holder-key thumbprint
 * (RFC 7638) and `jti`, each ended by LF. None of the parts can hold an LF (docs/protocol.md
 * "Transcript"), so no two sets of parts share their lines.
 */
export function replayIdentifier(authSite: string, holderThumbprint: string, jti: string): string {
  return hash('sha256', `proofgate-jti-v1\n${authSite}\n${holderThumbprint}\n${jti}\n`, 'base64url');
}
