/** JSON members of the report: caller, credentials, times, and differences of compared lines. Source: docs/operate/explain.md "As JSON". */
import { hash } from 'node:crypto';
import { proofTermsOf } from '../../../protocol/accepted-credentials.ts';
import type { AccessToken } from '../../../protocol/access-token.ts';
import type { RequestHeaders } from '../../../protocol/credentials.ts';
import type { HttpSignature } from '../../../protocol/http-signature.ts';
import type { Passport } from '../../../protocol/passport.ts';
import { sameJwk, thumbprintOf } from '../../../protocol/public-key.ts';
import { formatTime } from '../../../protocol/rfc3339.ts';
import { AUTHORIZATION_HEADER } from '../../../protocol/wire-names.ts';
import { tokenKeyOf } from '../facts/caller.ts';
import { type Explanation, HEADER_LINE } from './explain.ts';
import { type Redaction, redacted } from './redaction.ts';

/** The credentials by size and hash. The passport's claims are unverified unless its check passed. */
export function credentialMembers(explanation: Explanation, headers: RequestHeaders, show: Redaction) {
  const { credentials, route } = explanation;
  if (credentials === undefined) {
    return {
      readable: false,
      authorization: headers.lookup(route?.passportHeader ?? AUTHORIZATION_HEADER).kind,
      transcript: headers.lookup('x-proofgate-transcript').kind,
      signature: headers.lookup('x-proofgate-signature').kind,
    };
  }
  if (credentials.format === 'http-message-signatures') {
    const http_signature = signatureMembers(credentials.signature, explanation, show);
    if (credentials.passport === undefined) return { readable: true, http_signature };
    return { readable: true, passport: passportMembers(credentials.passport, show), http_signature };
  }
  if (credentials.passport === undefined) {
    const { proof, token } = credentials;
    const isOfHolder = thumbprintOf(proof.jwk) === token.holderThumbprint;
    const dpop = { sha256: sha256(proof.signingInput), of_holder: isOfHolder };
    return { readable: true, token: tokenMembers(token, show), dpop };
  }
  const passport = passportMembers(credentials.passport, show);
  if (credentials.format === 'dpop') {
    const { jwk, signingInput } = credentials.proof;
    const isOfHolder = sameJwk(jwk, credentials.passport.claims.holderJwk);
    return { readable: true, passport, dpop: { sha256: sha256(signingInput), of_holder: isOfHolder } };
  }
  const { signature, transcriptBytes } = credentials.proof;
  return {
    readable: true,
    passport,
    transcript: { bytes: transcriptBytes.byteLength, sha256: sha256(transcriptBytes) },
    signature: { bytes: signature.byteLength },
  };
}

function tokenMembers({ algorithm, issuer, keyId, sha256: ofJws, type }: AccessToken, show: Redaction) {
  return { sha256: ofJws, key_id: show.text(keyId), algorithm, type, issuer: show.text(issuer) };
}

const sha256 = (bytes: Buffer): string => hash('sha256', bytes, 'base64url');

function passportMembers({ algorithm, claims, keyId, sha256: ofJws }: Passport, show: Redaction) {
  return {
    sha256: ofJws,
    key_id: show.text(keyId),
    algorithm,
    passport_id: show.text(claims.passportId),
    issuer: show.text(claims.issuer),
    trust_domain: show.text(claims.trustDomain),
    subject: show.text(claims.subject),
    audience: show.text(claims.audience),
    key_binding: claims.keyBinding,
  };
}

/** `base`: the signature base as the request has it, line by line, up to a header that does not occur exactly once. */
function signatureMembers(
  { algorithm, components, keyId, params }: HttpSignature,
  { signatureBase }: Explanation,
  show: Redaction,
) {
  const lines = signatureBase?.kind === 'covered' ? signatureBase.lines : [];
  const names = new Set(components);
  return {
    key_id: show.text(keyId),
    algorithm: algorithm === undefined ? null : show.text(algorithm),
    base: [
      ...lines.map(
        ([name, value]) => `"${componentName(name, show)}": ${shownComponent(name, value, names, show)}`,
      ),
      `"@signature-params": ${redacted(params)}`,
    ],
    unknown: signatureBase?.kind === 'unknown' ? show.headerName(signatureBase.name) : null,
  };
}

/** Derived components are names of the format. */
export function componentName(name: string, show: Redaction): string {
  return name.startsWith('@') ? name : show.headerName(name);
}

function shownComponent(name: string, value: string, names: ReadonlySet<string>, show: Redaction): string {
  switch (name) {
    case '@method':
      return show.method(value);
    case '@scheme':
      return show.scheme(value);
    case '@authority':
      return show.authority(value);
    case '@path':
    case '@query':
      return show.target(value);
    case '@target-uri': {
      const [, scheme = '', authority = '', target = ''] = /^([^:]*):\/\/([^/]*)(.*)$/s.exec(value) ?? [];
      return `${show.scheme(scheme)}://${show.authority(authority)}${show.target(target)}`;
    }
    default:
      return show.line(`${HEADER_LINE}${name}`, value, names);
  }
}

export function callerMembers({ caller, snapshot }: Explanation, show: Redaction) {
  if (caller === undefined) return null;
  const { bundleKey, derivedKey } = caller;
  const tokenKey = tokenKeyOf(caller, snapshot);
  return {
    issuer: show.text(caller.issuer),
    trust_domain: show.text(caller.trustDomain),
    subject: show.text(caller.subject),
    key_id: show.text(caller.keyId),
    key_binding: caller.keyBinding,
    /** `claimed`: stated by the passport, not by the bundle. */
    known_from: caller.identity === derivedKey?.client ? ('bundle' as const) : ('claimed' as const),
    key: bundleKey?.kind ?? (tokenKey === undefined ? null : ('oauth_key' as const)),
    key_thumbprint: bundleKey?.key.thumbprint ?? tokenKey?.thumbprint ?? null,
    key_status: derivedKey?.status ?? null,
    key_expires_at: derivedKey === undefined ? null : formatTime(derivedKey.expiresAtSeconds),
    client_id: derivedKey?.client.clientId ?? null,
    grants:
      derivedKey === undefined
        ? null
        : Object.fromEntries([...derivedKey.client.grants].map(([resource, access]) => [resource, access])),
  };
}

/** Seconds. `ahead`: from the moment to a later start; `late`: from an earlier end to the moment. Both 0 while valid. */
export interface ClockReading {
  readonly starts_at: string;
  readonly ends_at: string;
  /** Time since the start; negative before the start. */
  readonly age_seconds: number;
  readonly ahead_seconds: number;
  readonly late_seconds: number;
}

/** Compares the validity periods of passport and proof with the explained moment. */
export function clockMembers({ credentials, nowSeconds, snapshot }: Explanation) {
  if (credentials === undefined || snapshot === undefined) return null;
  const { expiresAtSeconds, issuedAtSeconds } = proofTermsOf(credentials);
  return {
    skew_seconds: snapshot.skewSeconds,
    passport: passportReading(credentials.passport, nowSeconds),
    proof: reading(issuedAtSeconds, expiresAtSeconds, nowSeconds),
  };
}

function passportReading(passport: Passport | undefined, nowSeconds: number): ClockReading | null {
  if (passport === undefined) return null;
  const { expiresAtSeconds, issuedAtSeconds, notBeforeSeconds = 0 } = passport.claims;
  return reading(Math.max(issuedAtSeconds, notBeforeSeconds), expiresAtSeconds, nowSeconds);
}

/** Shows a time beyond the calendar's range, which a transcript can contain, as its seconds. */
export function shownTime(seconds: number): string {
  return seconds < END_OF_CALENDAR_SECONDS ? formatTime(seconds) : String(seconds);
}

/** The year 10000. */
const END_OF_CALENDAR_SECONDS = 253_402_300_800;

function reading(startSeconds: number, endSeconds: number, nowSeconds: number): ClockReading {
  return {
    starts_at: shownTime(startSeconds),
    ends_at: shownTime(endSeconds),
    age_seconds: nowSeconds - startSeconds,
    ahead_seconds: Math.max(0, startSeconds - nowSeconds),
    late_seconds: Math.max(0, nowSeconds - endSeconds),
  };
}

export interface Difference {
  /** Position of the first difference, from 1; if one text is a prefix of the other, one past its end. */
  readonly character: number;
  /** `path segment 3`, `query parameter 2`; null for other lines than the target. */
  readonly place: string | null;
  /** Null when other characters differ too. */
  readonly only_in: 'case' | 'escapes' | null;
}

/** Describes where and how two redacted texts differ, without revealing them. */
export function differenceOf(line: string, signed: string, rebuilt: string): Difference | null {
  if (signed === rebuilt) return null;
  let equal = 0;
  while (equal < signed.length && signed[equal] === rebuilt[equal]) equal++;
  return {
    character: equal + 1,
    place: line === 'target' ? placeInTarget(signed, equal) : null,
    only_in: whatDiffers(signed, rebuilt),
  };
}

function placeInTarget(target: string, index: number): string {
  const before = target.slice(0, index);
  const query = before.indexOf('?');
  if (query === -1) return `path segment ${Math.max(1, before.split('/').length - 1)}`;
  return `query parameter ${before.slice(query + 1).split('&').length}`;
}

/** Null when more than case or escapes differ. */
export function whatDiffers(signed: string, rebuilt: string): Difference['only_in'] {
  if (unescaped(signed) === unescaped(rebuilt)) return 'escapes';
  return signed.toLowerCase() === rebuilt.toLowerCase() ? 'case' : null;
}

function unescaped(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
