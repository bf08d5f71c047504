/** JSON members that describe the caller and the credentials of a request. Source: docs/explain.md "As JSON". */
import { hash } from 'node:crypto';
import type { RequestHeaders } from '../../protocol/credentials.ts';
import { formatTime } from '../../protocol/rfc3339.ts';
import type { Explanation } from '../../verifier/decision/explain/explain.ts';
import type { Redaction } from './printed-values.ts';

/** The credentials by size and hash. The passport's claims are unverified unless its check passed. */
export function credentialMembers({ credentials }: Explanation, headers: RequestHeaders, show: Redaction) {
  if (credentials === undefined) {
    return {
      readable: false,
      authorization: headers.lookup('authorization').kind,
      transcript: headers.lookup('x-proofgate-transcript').kind,
      signature: headers.lookup('x-proofgate-signature').kind,
    };
  }
  const { passport, proof } = credentials;
  const { claims } = passport;
  return {
    readable: true,
    passport: {
      sha256: passport.sha256,
      key_id: show.text(passport.keyId),
      algorithm: passport.algorithm,
      passport_id: show.text(claims.passportId),
      issuer: show.text(claims.issuer),
      trust_domain: show.text(claims.trustDomain),
      subject: show.text(claims.subject),
      audience: show.text(claims.audience),
      key_binding: claims.keyBinding,
    },
    transcript: {
      bytes: proof.transcriptBytes.byteLength,
      sha256: hash('sha256', proof.transcriptBytes, 'base64url'),
    },
    signature: { bytes: proof.signature.byteLength },
  };
}

export function callerMembers({ caller }: Explanation, show: Redaction) {
  if (caller === undefined) return null;
  const { bundleKey, derivedKey } = caller;
  return {
    issuer: show.text(caller.issuer),
    trust_domain: show.text(caller.trustDomain),
    subject: show.text(caller.subject),
    key_id: show.text(caller.keyId),
    key_binding: caller.keyBinding,
    /** `claimed`: stated by the passport, not by the bundle. */
    known_from: derivedKey === undefined ? 'claimed' : 'bundle',
    key: bundleKey?.kind ?? null,
    key_thumbprint: bundleKey?.key.thumbprint ?? null,
    key_status: derivedKey?.status ?? null,
    key_expires_at: derivedKey === undefined ? null : formatTime(derivedKey.expiresAtSeconds),
    client_id: derivedKey?.client.clientId ?? null,
    grants:
      derivedKey === undefined
        ? null
        : Object.fromEntries([...derivedKey.client.grants].map(([resource, access]) => [resource, access])),
  };
}
