/**
 * Reads a request's credentials in the one format that it uses, among those that its route accepts. Headers of other formats
 * are ordinary headers.
 * Source: docs/design/protocol.md "HTTP Message Signatures" and "DPoP".
 */
import type { AccessToken } from './access-token.ts';
import {
  type Credentials,
  type DpopCredentials,
  holdsPassport,
  type ParsedPassportLookup,
  type ParsedTokenLookup,
  type RequestHeaders,
  readCredentials,
  readDpopCredentials,
  readPassportOf,
} from './credentials.ts';
import { DPOP_PROOF_SECONDS } from './dpop-proof.ts';
import { type HttpSignature, mayHaveSignature, readHttpSignature, SITE_PROFILE } from './http-signature.ts';
import type { Passport } from './passport.ts';
import type { ProofFormat } from './proof-format.ts';
import { type Denial, deny } from './reasons.ts';
import {
  AUTHORIZATION_HEADER,
  DPOP_HEADER,
  hasDpopScheme,
  hasPassportScheme,
  type PassportHeader,
  SIGNATURE_HEADER,
  TRANSCRIPT_HEADER,
} from './wire-names.ts';

export interface SignatureCredentials {
  readonly format: 'http-message-signatures';
  /** Undefined: signed by a derived key of the bundle, which `keyid` names. */
  readonly passport: Passport | undefined;
  readonly signature: HttpSignature;
}

export type AcceptedCredentials = Credentials | SignatureCredentials | DpopCredentials;

export interface CredentialRules {
  readonly authSite: string;
  readonly passportHeader: PassportHeader;
  /** Undefined: transcript-v1 alone. */
  readonly acceptedProofs: ReadonlySet<ProofFormat> | undefined;
  /** Whether the enforcement point removes the proof, whatever its format; otherwise it accepts transcripts alone. */
  readonly removesProofs: boolean;
  /** Access tokens that were parsed before; undefined: the site has no OAuth issuers. */
  readonly knownToken: ParsedTokenLookup | undefined;
}

export function readAcceptedCredentials(
  headers: RequestHeaders,
  rules: CredentialRules,
  knownPassport: ParsedPassportLookup,
): AcceptedCredentials | Denial {
  const { acceptedProofs, passportHeader } = rules;
  if (acceptedProofs === undefined) return readCredentials(headers, passportHeader, knownPassport);
  const other =
    (acceptedProofs.has('dpop') ? readDpop(headers, rules, acceptedProofs, knownPassport) : undefined) ??
    (acceptedProofs.has('http-message-signatures')
      ? readSigned(headers, rules, acceptedProofs, knownPassport)
      : undefined);
  if (other !== undefined) return other;
  if (acceptedProofs.has('transcript-v1')) return readCredentials(headers, passportHeader, knownPassport);
  return withoutProof(headers, passportHeader, acceptedProofs);
}

/** Undefined for a request with neither part of a DPoP proof. */
function readDpop(
  headers: RequestHeaders,
  { authSite, knownToken, removesProofs }: CredentialRules,
  acceptedProofs: ReadonlySet<ProofFormat>,
  knownPassport: ParsedPassportLookup,
): DpopCredentials | Denial | undefined {
  const authorizations = headers.values(AUTHORIZATION_HEADER);
  const isNamed = authorizations.some(hasDpopScheme);
  if (!isNamed && headers.lookup(DPOP_HEADER).kind === 'absent') return undefined;
  const hasOther =
    (acceptedProofs.has('transcript-v1') &&
      (hasTranscript(headers) || authorizations.some(hasPassportScheme))) ||
    (acceptedProofs.has('http-message-signatures') && mayHaveSignature(headers, SITE_PROFILE, authSite));
  if (hasOther) return deny('invalid_request_proof', 'proof_ambiguous');
  if (isNamed && removesProofs) return readDpopCredentials(headers, knownPassport, knownToken);
  const isAbsent = authorizations.length === 0;
  return deny('invalid_request_proof', isAbsent ? 'authorization_missing' : 'authorization_scheme');
}

/** Undefined for a request without a signature for the site. */
function readSigned(
  headers: RequestHeaders,
  { authSite, passportHeader, removesProofs }: CredentialRules,
  acceptedProofs: ReadonlySet<ProofFormat>,
  knownPassport: ParsedPassportLookup,
): SignatureCredentials | Denial | undefined {
  const hasPassport = headers.lookup(passportHeader).kind !== 'absent';
  const hasAcceptedTranscript = acceptedProofs.has('transcript-v1') && hasTranscript(headers);
  if (!removesProofs) {
    // Beside an accepted transcript it would reach the upstream unused.
    const isSecond = hasAcceptedTranscript || hasPassport;
    return isSecond && mayHaveSignature(headers, SITE_PROFILE, authSite)
      ? deny('invalid_request_proof', 'proof_ambiguous')
      : undefined;
  }
  const reading = readHttpSignature(headers, SITE_PROFILE, authSite, passportHeader, hasPassport);
  if (reading.kind === 'absent') return undefined;
  if (reading.kind === 'malformed') return deny('invalid_request_proof', 'proof_malformed');
  if (hasAcceptedTranscript) return deny('invalid_request_proof', 'proof_ambiguous');
  const isElsewhere =
    passportHeader !== AUTHORIZATION_HEADER && headers.values(AUTHORIZATION_HEADER).some(holdsPassport);
  if (isElsewhere) return deny('invalid_request_proof', 'passport_repeated');
  const passport = hasPassport ? readPassportOf(headers, passportHeader, knownPassport) : undefined;
  if (passport !== undefined && 'kind' in passport) return passport;
  return { format: 'http-message-signatures', passport, signature: reading.signature };
}

function hasTranscript(headers: RequestHeaders): boolean {
  return [TRANSCRIPT_HEADER, SIGNATURE_HEADER].some((name) => headers.lookup(name).kind !== 'absent');
}

/** For a route that does not accept transcripts. */
function withoutProof(
  headers: RequestHeaders,
  passportHeader: PassportHeader,
  acceptedProofs: ReadonlySet<ProofFormat>,
): Denial {
  const authorization = headers.lookup(AUTHORIZATION_HEADER);
  if (authorization.kind === 'absent' && !acceptedProofs.has('http-message-signatures')) {
    return deny('invalid_request_proof', 'authorization_missing');
  }
  const takesPassport = acceptedProofs.has('http-message-signatures');
  const isOfOtherScheme =
    authorization.kind === 'single' && !(takesPassport && hasPassportScheme(authorization.value));
  return deny(
    'invalid_request_proof',
    isOfOtherScheme && passportHeader === AUTHORIZATION_HEADER ? 'authorization_scheme' : 'proof_missing',
  );
}

/** What every proof states: its replay identifier, and its times in seconds. */
export interface ProofTerms {
  readonly jti: string;
  readonly issuedAtSeconds: number;
  readonly expiresAtSeconds: number;
}

export function proofTermsOf(credentials: AcceptedCredentials): ProofTerms {
  switch (credentials.format) {
    case 'transcript-v1':
      return credentials.proof.transcript;
    case 'http-message-signatures':
      return credentials.signature;
    case 'dpop': {
      const { issuedAtSeconds, jti } = credentials.proof;
      return { jti, issuedAtSeconds, expiresAtSeconds: issuedAtSeconds + DPOP_PROOF_SECONDS };
    }
  }
}

/** The passport or access token; undefined for a key that signs requests itself. */
export function tokenOf(credentials: AcceptedCredentials): Passport | AccessToken | undefined {
  if (credentials.format !== 'dpop') return credentials.passport;
  return credentials.passport ?? credentials.token;
}
