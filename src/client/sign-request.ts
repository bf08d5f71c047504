/**
 * Signs one request: a passport that identifies the caller, and a proof that is bound to exactly this request.
 * Source: docs/protocol.md "Passport", "Transcript".
 */
import { contentSha256 } from '../protocol/body-binding.ts';
import { isMethod } from '../protocol/identifiers.ts';
import { MAX_PASSPORT_BYTES, MAX_PROOF_TTL_SECONDS } from '../protocol/limits.ts';
import { parsePassport, passportSha256 } from '../protocol/passport.ts';
import { thumbprintOf } from '../protocol/public-key.ts';
import { newJti, type SigningKey, signPassport, signTranscript } from '../protocol/signing.ts';
import { decodeTranscript, parseTranscript, type Transcript } from '../protocol/transcript.ts';
import { PASSPORT_SCHEME } from '../protocol/wire-names.ts';
import { ClientError } from './client-error.ts';
import { CredentialHeaders } from './credential-headers.ts';
import { type RequestHeader, selectSignedHeaders } from './request-headers.ts';
import { parseRequestUrl, type RequestUrl } from './request-url.ts';
import {
  type ProfileChoice,
  type SelectedProfile,
  selectAmongFiles,
  selectProfile,
} from './select-profile.ts';
import type { RouteProfile, SigningCoordinates, SigningProfiles } from './signing-profile.ts';

/** The request to sign and send. */
export interface RequestToSign {
  /** Case-sensitive. */
  readonly method: string;
  /** As given; its target is signed byte for byte. */
  readonly url: string;
  /** Undefined or empty: no body. */
  readonly body: Uint8Array | undefined;
  readonly headers: readonly RequestHeader[];
  /** Further header names to sign; each must be in `headers`. */
  readonly extraSignedHeaders: readonly string[];
}

/** The signer's identity, key and lifetime. */
export interface Signer {
  readonly profiles: SigningProfiles;
  readonly choice: ProfileChoice;
  /** The holder key that the passport names. */
  readonly holderKey: SigningKey;
  /** Compact JWS from a broker; undefined when the holder key signs its own passport. */
  readonly brokerPassport: string | undefined;
  /** 1 to 300; lifetime of the proof and of a self-signed passport. */
  readonly ttlSeconds: number;
  readonly nowSeconds: number;
}

export interface SignedRequest {
  readonly method: string;
  readonly url: RequestUrl;
  readonly credentials: CredentialHeaders;
  readonly routeId: string;
  readonly keyId: string;
  readonly signedHeaderNames: readonly string[];
  readonly issuedAtSeconds: number;
  readonly expiresAtSeconds: number;
}

/**
 * Selects the profile that the request needs, before there is a passport for its audience.
 * @throws ClientError as `selectAmongFiles`, or `method_invalid`, `url_invalid`, `url_not_canonical`
 */
export function profileFor(
  { method, url }: Pick<RequestToSign, 'method' | 'url'>,
  files: readonly SigningProfiles[],
  choice: ProfileChoice,
): SelectedProfile {
  if (!isMethod(method)) throw new ClientError('method_invalid', 'the method is not an HTTP method');
  return selectAmongFiles(files, method, parseRequestUrl(url), choice);
}

/** @throws ClientError with a code for the mismatch in request, profile or passport */
export function signRequest(request: RequestToSign, signer: Signer): SignedRequest {
  const { method } = request;
  if (!isMethod(method)) throw new ClientError('method_invalid', 'the method is not an HTTP method');
  const url = parseRequestUrl(request.url);
  const profile = selectProfile(signer.profiles.profiles, method, url, signer.choice);
  const times = proofTimes(signer);
  const passport = choosePassport(signer, profile, times);
  const transcript: Transcript = {
    authSite: signer.profiles.coordinates.authSite,
    keyId: passport.keyId,
    passportSha256: passportSha256(passport.jws),
    issuer: signer.profiles.coordinates.issuer,
    subject: signer.profiles.coordinates.subject,
    audience: profile.audience,
    routeId: profile.routeId,
    method,
    scheme: url.scheme,
    authority: url.authority,
    target: url.target,
    jti: newJti(),
    ...times,
    contentSha256: contentSha256(method, profile.body, request.body ?? NO_BODY),
    headers: selectSignedHeaders(request.headers, profile.signedHeaders, request.extraSignedHeaders),
  };
  return {
    method,
    url,
    credentials: signedCredentials(passport.jws, transcript, signer.holderKey),
    routeId: profile.routeId,
    keyId: passport.keyId,
    signedHeaderNames: transcript.headers.map(({ name }) => name),
    ...times,
  };
}

interface ProofTimes {
  readonly issuedAtSeconds: number;
  readonly expiresAtSeconds: number;
}

function proofTimes({ ttlSeconds, nowSeconds }: Signer): ProofTimes {
  if (!Number.isInteger(ttlSeconds) || ttlSeconds < 1 || ttlSeconds > MAX_PROOF_TTL_SECONDS) {
    throw new ClientError(
      'ttl_out_of_range',
      `the proof must live 1s to ${MAX_PROOF_TTL_SECONDS}s, in whole seconds`,
    );
  }
  return { issuedAtSeconds: nowSeconds, expiresAtSeconds: nowSeconds + ttlSeconds };
}

interface ChosenPassport {
  readonly jws: string;
  readonly keyId: string;
}

function choosePassport(signer: Signer, profile: RouteProfile, times: ProofTimes): ChosenPassport {
  const { coordinates } = signer.profiles;
  if (signer.brokerPassport === undefined)
    return signOwnPassport(signer.holderKey, coordinates, profile, times);
  return readBrokerPassport(signer.brokerPassport, {
    coordinates,
    audience: profile.audience,
    holderThumbprint: signer.holderKey.publicKey.thumbprint,
    nowSeconds: signer.nowSeconds,
  });
}

/** A passport signed by a derived key itself. It needs no longer lifetime than the proof. */
function signOwnPassport(
  key: SigningKey,
  { keyId, keyBinding, issuer, subject, trustDomain }: SigningCoordinates,
  { audience }: RouteProfile,
  times: ProofTimes,
): ChosenPassport {
  if (keyId === undefined) {
    throw new ClientError('key_id_missing', 'the profile file names no key_id, and no passport is given');
  }
  if (keyBinding !== 'software') {
    throw new ClientError(
      'passport_required',
      `a key may not attest ${keyBinding} for itself: a broker's passport is needed`,
    );
  }
  const holderJwk = key.publicKey.jwk;
  const jws = signPassport(
    { keyId, issuer, subject, trustDomain, audience, keyBinding, holderJwk, ...times },
    key,
  );
  return { jws, keyId };
}

const NO_BODY = new Uint8Array(0);

function signedCredentials(jws: string, transcript: Transcript, holderKey: SigningKey): CredentialHeaders {
  const proof = signTranscript(transcript, holderKey);
  const bytes = decodeTranscript(proof.transcript);
  if (jws.length > MAX_PASSPORT_BYTES || parsePassport(jws) === undefined || bytes === undefined) {
    throw new ClientError(
      'credentials_too_large',
      'passport or transcript is longer than 8 KiB: URL or headers are too long',
    );
  }
  if (parseTranscript(bytes) === undefined) throw new Error('a transcript was made that no verifier reads');
  return new CredentialHeaders({ authorization: `${PASSPORT_SCHEME} ${jws}`, ...proof });
}

/** Reads a passport from a broker and checks that it matches the signing profile and the holder key. */

interface PassportExpectation {
  readonly coordinates: SigningCoordinates;
  readonly audience: string;
  /** RFC 7638 thumbprint of the key that will sign the proof. */
  readonly holderThumbprint: string;
  readonly nowSeconds: number;
}

/**
 * Its signature is not checked: only the verifier knows the broker's key.
 * @param text compact JWS, optionally with a trailing line break
 * @throws ClientError `passport_malformed`, `passport_expired`, `passport_mismatch`
 */
function readBrokerPassport(
  text: string,
  expected: PassportExpectation,
): { readonly jws: string; readonly keyId: string } {
  const jws = text.trim();
  const passport = parsePassport(jws);
  if (passport === undefined)
    throw new ClientError('passport_malformed', 'the passport is not one of Proofgate');
  const { claims } = passport;
  const { coordinates } = expected;
  if (claims.expiresAtSeconds <= expected.nowSeconds) {
    throw new ClientError('passport_expired', 'the passport has expired');
  }
  requireEqual('iss', claims.issuer, coordinates.issuer);
  requireEqual('sub', claims.subject, coordinates.subject);
  requireEqual('trust_domain', claims.trustDomain, coordinates.trustDomain);
  requireEqual('key_binding', claims.keyBinding, coordinates.keyBinding);
  requireEqual('aud', claims.audience, expected.audience);
  requireEqual('cnf', thumbprintOf(claims.holderJwk), expected.holderThumbprint);
  return { jws, keyId: passport.keyId };
}

function requireEqual(claim: string, actual: string, expected: string): void {
  if (actual !== expected) {
    throw new ClientError('passport_mismatch', `the passport's ${claim} is not the one of profile and key`);
  }
}
