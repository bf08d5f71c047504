/**
 * Checks of passport and proof in step 5, in the order of `steps.ts`, before the binding to the request.
 * Source: docs/design/protocol.md "Decision: first fault wins", step 5.
 */
import type {
  BundleKey,
  ClientEntry,
  DerivedKey,
  IssuerEntry,
  IssuerKey,
} from '../../../bundle/compile/snapshot.ts';
import { type AcceptedCredentials, proofTermsOf } from '../../../protocol/accepted-credentials.ts';
import type { TokenCredentials } from '../../../protocol/credentials.ts';
import { satisfiesKeyBinding } from '../../../protocol/identifiers.ts';
import { importPublicKey } from '../../../protocol/import-public-key.ts';
import { DERIVED_KEY_PASSPORT_TTL_SECONDS, MAX_PROOF_TTL_SECONDS } from '../../../protocol/limits.ts';
import type { Attributes, Passport, PassportClaims } from '../../../protocol/passport.ts';
import { type PublicKey, thumbprintOf } from '../../../protocol/public-key.ts';
import { type Denial, deny } from '../../../protocol/reasons.ts';
import { subjectLiesInTrustDomain } from '../../../protocol/spiffe-id.ts';
import { hasEnded, hasStarted } from '../../../protocol/validity.ts';
import { verifySignature } from '../../../protocol/verify-signature.ts';
import { type Evaluation, required } from '../facts/evaluation.ts';
import {
  checkTokenAudience,
  checkTokenClaims,
  checkTokenKey,
  checkTokenSignature,
  checkTokenTimes,
} from './access-token.ts';
import { checkBlocked } from './blocked.ts';
import { checkDpopNonce, checkDpopSignature } from './dpop-binding.ts';
import { checkHttpSignature } from './signature-binding.ts';

const NO_GRACE_SECONDS = 0;

/** The bundle has the key and it is valid now. The site's skew applies to the start of its validity, not to the end. */
export function checkKey(evaluation: Evaluation): Denial | undefined {
  const { evidence, inputs, snapshot } = evaluation;
  const credentials = required(evidence.credentials);
  if (isToken(credentials)) return checkTokenKey(evaluation, credentials);
  const key = evidence.caller?.bundleKey;
  evaluation.key = key;
  if (credentials.passport === undefined) evaluation.holder = key?.key;
  return keyDenial(key, inputs.nowSeconds, required(snapshot).skewSeconds);
}

/** What {@link keyDenial} reads of a key. */
type KeyValidity =
  | Pick<DerivedKey, 'kind' | 'status' | 'expiresAtSeconds'>
  | Pick<IssuerKey, 'kind' | 'notBeforeSeconds' | 'notAfterSeconds'>;

export function keyDenial(
  key: KeyValidity | undefined,
  nowSeconds: number,
  skewSeconds: number,
): Denial | undefined {
  if (key === undefined) return deny('invalid_request_proof', 'key_unknown');
  if (key.kind === 'derived_key') {
    if (key.status === 'revoked') return deny('invalid_request_proof', 'key_revoked');
    const isExpired = hasEnded(key.expiresAtSeconds, nowSeconds, NO_GRACE_SECONDS);
    return isExpired ? deny('invalid_request_proof', 'key_expired') : undefined;
  }
  const { notAfterSeconds, notBeforeSeconds } = key;
  if (notBeforeSeconds !== undefined && !hasStarted(notBeforeSeconds, nowSeconds, skewSeconds)) {
    return deny('invalid_request_proof', 'key_not_yet_valid');
  }
  const isExpired = notAfterSeconds !== undefined && hasEnded(notAfterSeconds, nowSeconds, NO_GRACE_SECONDS);
  return isExpired ? deny('invalid_request_proof', 'key_expired') : undefined;
}

function isToken(credentials: AcceptedCredentials): credentials is TokenCredentials {
  return credentials.format === 'dpop' && credentials.passport === undefined;
}

function passportOf({ evidence }: Evaluation): Passport {
  return required(required(evidence.credentials).passport);
}

export function checkPassportSignature(evaluation: Evaluation): Denial | undefined {
  const credentials = required(evaluation.evidence.credentials);
  if (isToken(credentials)) return checkTokenSignature(evaluation, credentials);
  const passport = passportOf(evaluation);
  const verified = verifyPassport(passport, required(evaluation.key), evaluation);
  if (verified === undefined) return deny('invalid_request_proof', 'passport_signature');
  evaluation.holder = verified.holder;
  return undefined;
}

/** The holder key of a passport with a valid signature; undefined when the signature is invalid. */
function verifyPassport(
  passport: Passport,
  bundleKey: BundleKey,
  { inputs }: Evaluation,
): { readonly holder: PublicKey | undefined } | undefined {
  const { nowSeconds, passports } = inputs;
  const { key } = bundleKey;
  if (passport.algorithm !== key.algorithm) return undefined;
  const known = passports.get(passport.sha256);
  if (known?.verifiedByThumbprint === key.thumbprint) return known;
  if (!verifySignature(key, passport.signingInput, passport.signature)) return undefined;
  const { holderJwk } = passport.claims;
  const isOwnKey = thumbprintOf(holderJwk) === key.thumbprint;
  // A derived key can sign any number of passports. Other holders' points need no validation, and passports with
  // disallowed claims are not cached.
  if (bundleKey.kind === 'derived_key' && !isOwnKey) return NO_HOLDER;
  const holder = isOwnKey ? key : importPublicKey(holderJwk);
  const verified = { passport, verifiedByThumbprint: key.thumbprint, holder };
  if (bundleKey.kind === 'issuer_key' || passportClaimsAllowed(passport, bundleKey, key)) {
    passports.remember(verified, nowSeconds);
  }
  return verified;
}

const NO_HOLDER = { holder: undefined };

export function checkClaims(evaluation: Evaluation): Denial | undefined {
  const credentials = required(evaluation.evidence.credentials);
  if (isToken(credentials)) return checkTokenClaims(evaluation, credentials);
  const { holder, key } = evaluation;
  const passport = passportOf(evaluation);
  return holder !== undefined && passportClaimsAllowed(passport, required(key), holder)
    ? undefined
    : deny('invalid_request_proof', 'claims_not_allowed');
}

export function checkPassportTimes(evaluation: Evaluation): Denial | undefined {
  const credentials = required(evaluation.evidence.credentials);
  if (isToken(credentials)) return checkTokenTimes(evaluation, credentials);
  const { claims } = passportOf(evaluation);
  const key = required(evaluation.key);
  const { skewSeconds } = required(evaluation.snapshot);
  const { nowSeconds } = evaluation.inputs;
  const ttlSeconds = claims.expiresAtSeconds - claims.issuedAtSeconds;
  const maxSeconds =
    key.kind === 'derived_key' ? DERIVED_KEY_PASSPORT_TTL_SECONDS : key.issuer.maxPassportTtlSeconds;
  if (ttlSeconds < 1 || ttlSeconds > maxSeconds) return deny('invalid_request_proof', 'passport_ttl');
  const startSeconds = Math.max(claims.issuedAtSeconds, claims.notBeforeSeconds ?? 0);
  if (!hasStarted(startSeconds, nowSeconds, skewSeconds)) {
    return deny('invalid_request_proof', 'passport_not_yet_valid');
  }
  return hasEnded(claims.expiresAtSeconds, nowSeconds, skewSeconds)
    ? deny('invalid_request_proof', 'passport_expired')
    : undefined;
}

export function checkAudience(evaluation: Evaluation): Denial | undefined {
  const credentials = required(evaluation.evidence.credentials);
  if (isToken(credentials)) return checkTokenAudience(evaluation, credentials);
  const { claims } = passportOf(evaluation);
  return claims.audience === required(evaluation.evidence.route).audience
    ? undefined
    : deny('invalid_request_proof', 'audience');
}

export function checkProofSignature(evaluation: Evaluation): Denial | undefined {
  const { evidence, holder } = evaluation;
  const credentials = required(evidence.credentials);
  switch (credentials.format) {
    case 'http-message-signatures':
      return (
        checkHttpSignature(evaluation, credentials) ??
        (credentials.passport === undefined ? checkBlocked(evaluation) : undefined)
      );
    case 'dpop':
      return (
        checkDpopSignature(evaluation, credentials.proof) ?? checkDpopNonce(evaluation, credentials.proof)
      );
    case 'transcript-v1': {
      const { signature, transcriptBytes } = credentials.proof;
      return verifySignature(required(holder), transcriptBytes, signature)
        ? undefined
        : deny('invalid_request_proof', 'proof_signature');
    }
  }
}

export function checkProofTimes({ evidence, inputs, snapshot }: Evaluation): Denial | undefined {
  const { issuedAtSeconds, expiresAtSeconds } = proofTermsOf(required(evidence.credentials));
  const { skewSeconds } = required(snapshot);
  const { nowSeconds } = inputs;
  const ttlSeconds = expiresAtSeconds - issuedAtSeconds;
  if (ttlSeconds < 1 || ttlSeconds > MAX_PROOF_TTL_SECONDS) return deny('invalid_request_proof', 'proof_ttl');
  if (!hasStarted(issuedAtSeconds, nowSeconds, skewSeconds)) {
    return deny('invalid_request_proof', 'proof_not_yet_valid');
  }
  return hasEnded(expiresAtSeconds, nowSeconds, skewSeconds)
    ? deny('invalid_request_proof', 'proof_expired')
    : undefined;
}

/**
 * Part of step 5: the claims of a passport stay within what its signing key may state.
 * Source: docs/design/protocol.md "Passport".
 */
export function passportClaimsAllowed({ claims }: Passport, key: BundleKey, holder: PublicKey): boolean {
  return identityAllowed(claims, key) && (key.kind === 'issuer_key' || statesOwn(claims, key, holder));
}

type ClaimedIdentity = Pick<PassportClaims, 'issuer' | 'trustDomain' | 'subject' | 'keyBinding'>;

/** Whether the key may state this identity, whatever else the passport claims. */
export function identityAllowed(
  claims: ClaimedIdentity,
  key: Pick<DerivedKey, 'kind' | 'client'> | Pick<IssuerKey, 'kind' | 'issuer'>,
): boolean {
  return key.kind === 'derived_key' ? isOfClient(claims, key.client) : allowedForIssuer(claims, key.issuer);
}

/** A derived key signs its own passport and states exactly what the bundle states about it. */
function isOfClient(claims: ClaimedIdentity, client: ClientEntry): boolean {
  return (
    claims.issuer === client.issuer &&
    claims.trustDomain === client.trustDomain &&
    claims.subject === client.subject &&
    claims.keyBinding === 'software'
  );
}

function statesOwn(claims: PassportClaims, key: DerivedKey, holder: PublicKey): boolean {
  return (
    holder.thumbprint === key.key.thumbprint &&
    absentOrEqual(claims.provenance, key.provenance) &&
    absentOrEqual(claims.context, key.client.context)
  );
}

function allowedForIssuer(claims: ClaimedIdentity, issuer: IssuerEntry): boolean {
  return (
    claims.issuer === issuer.issuer &&
    claims.trustDomain === issuer.trustDomain &&
    issuer.subjectPrefixes.some((prefix) => claims.subject.startsWith(prefix)) &&
    subjectLiesInTrustDomain(claims.subject, claims.trustDomain) &&
    satisfiesKeyBinding(issuer.keyBinding, claims.keyBinding)
  );
}

export function absentOrEqual(claimed: Attributes | undefined, actual: Attributes): boolean {
  if (claimed === undefined) return true;
  if (claimed.size !== actual.size) return false;
  for (const [name, value] of claimed) if (actual.get(name) !== value) return false;
  return true;
}
