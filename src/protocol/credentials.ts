/**
 * Reads the two credentials of a request: the passport, in the header that the route names, and the proof: a header pair, or
 * a DPoP proof. It reads them in a fixed order, sizes first, and verifies nothing.
 * Source: docs/design/protocol.md "Request headers" and step 1 of its decision table.
 */
import { type AccessToken, parseAccessToken } from './access-token.ts';
import { decodeBase64url } from './base64url.ts';
import { type DpopProof, parseDpopProof } from './dpop-proof.ts';
import { MAX_PASSPORT_BYTES, MAX_SIGNATURE_BYTES } from './limits.ts';
import { type Passport, parsePassport, passportSha256 } from './passport.ts';
import { type Denial, deny } from './reasons.ts';
import { SIGNATURE_BYTES } from './signature.ts';
import { decodeTranscript, parseTranscript, type Transcript } from './transcript.ts';
import {
  AUTHORIZATION_HEADER,
  DPOP_HEADER,
  DPOP_SCHEME,
  hasPassportScheme,
  PASSPORT_SCHEME,
  type PassportHeader,
  SIGNATURE_HEADER,
  TRANSCRIPT_HEADER,
} from './wire-names.ts';

/**
 * The value of a request header. `ambiguous`: it has several lines, or one that may have been joined from several.
 * Values have no optional white space at their ends, and one character for each byte.
 */
export type HeaderLookup =
  | { readonly kind: 'absent' }
  | { readonly kind: 'single'; readonly value: string }
  | { readonly kind: 'ambiguous' };

export interface RequestHeaders {
  /** @param name lower case */
  lookup(name: string): HeaderLookup;
  /**
   * Every value of the header, even if `lookup` finds it ambiguous. One may be joined from several lines.
   * @param name lower case
   */
  values(name: string): readonly string[];
  /** All header names of the request as received. */
  names(): readonly string[];
  /** All header lines of the request as received. One may be joined from several. */
  lines(): readonly (readonly [name: string, value: string])[];
}

interface Proof {
  readonly transcript: Transcript;
  /** The bytes that the signature covers: the transcript as sent. */
  readonly transcriptBytes: Buffer;
  readonly signature: Buffer;
}

export interface Credentials {
  readonly format: 'transcript-v1';
  readonly passport: Passport;
  readonly proof: Proof;
}

/** A DPoP proof with a passport, or with an access token of an OAuth authorization server. */
export type DpopCredentials = PassportWithDpop | TokenCredentials;

interface PassportWithDpop {
  readonly format: 'dpop';
  readonly passport: Passport;
  readonly proof: DpopProof;
}

export interface TokenCredentials {
  readonly format: 'dpop';
  readonly passport: undefined;
  readonly token: AccessToken;
  readonly proof: DpopProof;
}

/** Returns a passport that was parsed before, by the SHA-256 of its JWS; parsing depends only on the bytes. */
export type ParsedPassportLookup = (sha256: string) => Passport | undefined;
export type ParsedTokenLookup = (sha256: string) => AccessToken | undefined;

/**
 * Returns the request's credentials, or the denial for the first fault.
 * @param passportHeader the header that the route names; a value elsewhere is not a passport
 */
export function readCredentials(
  headers: RequestHeaders,
  passportHeader: PassportHeader,
  knownPassport: ParsedPassportLookup,
): Credentials | Denial {
  const passport = readPassportOf(headers, passportHeader, knownPassport);
  if ('kind' in passport) return passport;
  const proof = readProof(headers, passportHeader);
  if ('kind' in proof) return proof;
  return { format: 'transcript-v1', passport, proof };
}

/** The passport in the header that the route names. */
export function readPassportOf(
  headers: RequestHeaders,
  passportHeader: PassportHeader,
  knownPassport: ParsedPassportLookup,
): Passport | Denial {
  return passportHeader === AUTHORIZATION_HEADER
    ? readAuthorization(headers.lookup(AUTHORIZATION_HEADER), knownPassport)
    : readPassportHeader(headers, passportHeader, knownPassport);
}

/**
 * As {@link readCredentials}, for `Authorization: DPoP` and the header `DPoP` (RFC 9449 section 7.1).
 * @param headers with the scheme in a value of `Authorization`
 * @param knownToken undefined where no access tokens are accepted
 */
export function readDpopCredentials(
  headers: RequestHeaders,
  knownPassport: ParsedPassportLookup,
  knownToken: ParsedTokenLookup | undefined,
): DpopCredentials | Denial {
  const authorization = headers.lookup(AUTHORIZATION_HEADER);
  if (authorization.kind !== 'single' || !hasScheme(authorization.value, DPOP_SCHEME)) {
    return deny('invalid_request_proof', 'passport_malformed');
  }
  const jws = authorization.value.slice(DPOP_SCHEME.length + 1);
  // No text is both: the types differ.
  const token = knownToken === undefined ? undefined : readToken(jws, knownToken);
  const passport = token === undefined ? readPassport(jws, knownPassport) : undefined;
  if (passport !== undefined && 'kind' in passport) return passport;
  const header = headers.lookup(DPOP_HEADER);
  if (header.kind === 'absent') return deny('invalid_request_proof', 'proof_missing');
  const proof = header.kind === 'single' ? parseDpopProof(header.value) : undefined;
  if (proof === undefined) return deny('invalid_request_proof', 'proof_malformed');
  return passport === undefined ? tokenCredentials(token, proof) : { format: 'dpop', passport, proof };
}

function readToken(jws: string, knownToken: ParsedTokenLookup): AccessToken | undefined {
  if (jws.length > MAX_PASSPORT_BYTES) return undefined;
  const sha256 = passportSha256(jws);
  return knownToken(sha256) ?? parseAccessToken(jws, sha256);
}

function tokenCredentials(token: AccessToken | undefined, proof: DpopProof): TokenCredentials | Denial {
  return token === undefined
    ? deny('invalid_request_proof', 'passport_malformed')
    : { format: 'dpop', passport: undefined, token, proof };
}

function readAuthorization(
  authorization: HeaderLookup,
  knownPassport: ParsedPassportLookup,
): Passport | Denial {
  if (authorization.kind === 'absent') return deny('invalid_request_proof', 'authorization_missing');
  if (authorization.kind === 'ambiguous') return deny('invalid_request_proof', 'passport_malformed');
  const { value } = authorization;
  if (!hasScheme(value, PASSPORT_SCHEME)) return deny('invalid_request_proof', 'authorization_scheme');
  return readPassport(value.slice(PASSPORT_SCHEME.length + 1), knownPassport);
}

/** `Authorization` is the application's. A passport there would reach the upstream, so it is refused. */
function readPassportHeader(
  headers: RequestHeaders,
  passportHeader: PassportHeader,
  knownPassport: ParsedPassportLookup,
): Passport | Denial {
  const header = headers.lookup(passportHeader);
  if (header.kind === 'absent') return deny('invalid_request_proof', 'authorization_missing');
  if (headers.values(AUTHORIZATION_HEADER).some(holdsPassport)) {
    return deny('invalid_request_proof', 'passport_repeated');
  }
  if (header.kind === 'ambiguous') return deny('invalid_request_proof', 'passport_malformed');
  return readPassport(header.value, knownPassport);
}

/** What may be a passport, the shortest of which has some 400 characters: a value of many short parts costs no parsing. */
const PASSPORT_CANDIDATES = /(?<![\w.-])[\w.-]{256,}/g;

/** Whether a value of `Authorization` holds a passport, whatever its scheme; with the scheme of passports, anything. */
export function holdsPassport(authorization: string): boolean {
  return (
    hasPassportScheme(authorization) ||
    (authorization.match(PASSPORT_CANDIDATES) ?? []).some((part) => parsePassport(part, '') !== undefined)
  );
}

function readPassport(jws: string, knownPassport: ParsedPassportLookup): Passport | Denial {
  if (jws.length > MAX_PASSPORT_BYTES) return deny('invalid_request_proof', 'passport_malformed');
  const sha256 = passportSha256(jws);
  return (
    knownPassport(sha256) ?? parsePassport(jws, sha256) ?? deny('invalid_request_proof', 'passport_malformed')
  );
}

/** Scheme names are case-insensitive, and a scheme may have no credentials (RFC 9110 sections 11.1 and 11.4). */
function hasScheme(value: string, scheme: string): boolean {
  const start = value.slice(0, scheme.length + 1);
  if (start === `${scheme} `) return true;
  const lower = start.toLowerCase();
  return lower === `${scheme.toLowerCase()} ` || lower === scheme.toLowerCase();
}

function readProof(headers: RequestHeaders, passportHeader: PassportHeader): Proof | Denial {
  const transcriptHeader = headers.lookup(TRANSCRIPT_HEADER);
  const signatureHeader = headers.lookup(SIGNATURE_HEADER);
  if (transcriptHeader.kind === 'absent' || signatureHeader.kind === 'absent') {
    return deny('invalid_request_proof', 'proof_missing');
  }
  if (transcriptHeader.kind === 'ambiguous' || signatureHeader.kind === 'ambiguous') {
    return deny('invalid_request_proof', 'proof_malformed');
  }
  const transcriptBytes = decodeTranscript(transcriptHeader.value);
  const transcript = transcriptBytes && parseTranscript(transcriptBytes, passportHeader);
  const signature =
    signatureHeader.value.length > MAX_SIGNATURE_BYTES ? undefined : decodeBase64url(signatureHeader.value);
  if (!transcriptBytes || !transcript || signature?.length !== SIGNATURE_BYTES) {
    return deny('invalid_request_proof', 'proof_malformed');
  }
  return { transcript, transcriptBytes, signature };
}
