/**
 * Computes the identifier under which the store records a proof's `jti`, and the name under which it counts a caller.
 * Source: docs/design/protocol.md "Replay".
 */
import { hash } from 'node:crypto';
import type { Caller } from '../decision/facts/caller.ts';

/**
 * base64url SHA-256 (43 characters) over the lines `proofgate-jti-v1`, Auth Site, holder-key thumbprint (RFC 7638) and
 * `jti`, each ended by LF. No part can contain an LF (docs/design/protocol.md "Transcript"), so different parts never give the
 * same lines.
 */
export function replayIdentifier(authSite: string, holderThumbprint: string, jti: string): string {
  return hash('sha256', `proofgate-jti-v1\n${authSite}\n${holderThumbprint}\n${jti}\n`, 'base64url');
}

/**
 * base64url SHA-256 over the lines `proofgate-subject-v1`, issuer and subject, each ended by LF. Has one length, and fits
 * into a key's name.
 */
export function subjectHash(issuer: string, subject: string): string {
  return hash('sha256', `proofgate-subject-v1\n${issuer}\n${subject}\n`, 'base64url');
}

const remembered = new WeakMap<Caller['identity'], { readonly subject: string; readonly hash: string }>();

/** {@link subjectHash} of a verified caller, computed once for each passport or client. */
export function subjectHashOf({
  identity,
  issuer,
  subject,
}: Pick<Caller, 'identity' | 'issuer' | 'subject'>): string {
  // The subject of an access token depends on the bundle too.
  const known = remembered.get(identity);
  if (known?.subject === subject) return known.hash;
  const computed = { subject, hash: subjectHash(issuer, subject) };
  remembered.set(identity, computed);
  return computed.hash;
}
