/**
 * Reads a request's credentials in the one format that it uses, among those that its route accepts. Headers of other formats
 * are ordinary headers.
 * Source: docs/design/protocol.md "HTTP Message Signatures".
 */
import {
  type Credentials,
  type ParsedPassportLookup,
  type RequestHeaders,
  readCredentials,
} from './credentials.ts';
import { type HttpSignature, KEYED_PROFILE, mayHaveSignature, readHttpSignature } from './http-signature.ts';
import type { ProofFormat } from './proof-format.ts';
import { type Denial, deny } from './reasons.ts';
import {
  AUTHORIZATION_HEADER,
  hasPassportScheme,
  type PassportHeader,
  SIGNATURE_HEADER,
  TRANSCRIPT_HEADER,
} from './wire-names.ts';

/** A request signed by a derived key itself. */
export interface KeyedCredentials {
  readonly passport: undefined;
  readonly signature: HttpSignature;
}

export type AcceptedCredentials = Credentials | KeyedCredentials;

export interface CredentialRules {
  readonly authSite: string;
  readonly passportHeader: PassportHeader;
  /** Undefined: transcript-v1 alone. */
  readonly acceptedProofs: ReadonlySet<ProofFormat> | undefined;
  /** Whether the enforcement point accepts HTTP message signatures. */
  readonly acceptsHttpSignatures: boolean;
}

export function readAcceptedCredentials(
  headers: RequestHeaders,
  rules: CredentialRules,
  knownPassport: ParsedPassportLookup,
): AcceptedCredentials | Denial {
  const { acceptedProofs, acceptsHttpSignatures, authSite, passportHeader } = rules;
  if (acceptedProofs === undefined) return readCredentials(headers, passportHeader, knownPassport);
  if (acceptedProofs.has('http-message-signatures') && acceptsHttpSignatures) {
    const reading = readHttpSignature(headers, KEYED_PROFILE, authSite, passportHeader);
    if (reading.kind === 'malformed') return deny('invalid_request_proof', 'proof_malformed');
    if (reading.kind === 'read')
      return keyedProblem(headers, rules) ?? { passport: undefined, signature: reading.signature };
  } else if (acceptedProofs.has('http-message-signatures')) {
    // Beside an accepted transcript it would reach the upstream unused.
    const hasSignature = mayHaveSignature(headers, KEYED_PROFILE, authSite);
    const problem = hasSignature ? keyedProblem(headers, rules) : undefined;
    if (problem !== undefined) return problem;
  }
  if (acceptedProofs.has('transcript-v1')) return readCredentials(headers, passportHeader, knownPassport);
  return withoutProof(headers, passportHeader);
}

/** A second proof, or a passport, would leave open which of the two speaks for the request. */
function keyedProblem(
  headers: RequestHeaders,
  { acceptedProofs, passportHeader }: CredentialRules,
): Denial | undefined {
  const isPresent = (name: string) => headers.lookup(name).kind !== 'absent';
  const hasTranscript = isPresent(TRANSCRIPT_HEADER) || isPresent(SIGNATURE_HEADER);
  if (hasTranscript && acceptedProofs?.has('transcript-v1')) {
    return deny('invalid_request_proof', 'proof_ambiguous');
  }
  const hasPassport = headers.values(AUTHORIZATION_HEADER).some(hasPassportScheme);
  if (passportHeader !== AUTHORIZATION_HEADER) {
    if (hasPassport) return deny('invalid_request_proof', 'passport_repeated');
    return isPresent(passportHeader) ? deny('invalid_request_proof', 'proof_ambiguous') : undefined;
  }
  if (!isPresent(AUTHORIZATION_HEADER)) return undefined;
  return deny('invalid_request_proof', hasPassport ? 'proof_ambiguous' : 'authorization_scheme');
}

/** For a route that does not accept transcripts. */
function withoutProof(headers: RequestHeaders, passportHeader: PassportHeader): Denial {
  const authorization = headers.lookup(AUTHORIZATION_HEADER);
  const isOfOtherScheme = authorization.kind === 'single' && !hasPassportScheme(authorization.value);
  return deny(
    'invalid_request_proof',
    isOfOtherScheme && passportHeader === AUTHORIZATION_HEADER ? 'authorization_scheme' : 'proof_missing',
  );
}

export function proofFormatOf({ passport }: AcceptedCredentials): ProofFormat {
  return passport === undefined ? 'http-message-signatures' : 'transcript-v1';
}

/** What every proof states: its replay identifier, and its times in seconds. */
export interface ProofTerms {
  readonly jti: string;
  readonly issuedAtSeconds: number;
  readonly expiresAtSeconds: number;
}

export function proofTermsOf(credentials: AcceptedCredentials): ProofTerms {
  return credentials.passport === undefined ? credentials.signature : credentials.proof.transcript;
}
