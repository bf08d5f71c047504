/**
 * Step 5: key, passport, audience and proof are valid, and the proof is for exactly this request.
 * Source: docs/protocol.md "Decision: first fault wins", step 5, in its order.
 */
import type { BundleKey, Route } from '../../bundle/snapshot.ts';
import type { Credentials, Proof } from '../../protocol/credentials.ts';
import type { Passport } from '../../protocol/passport.ts';
import { importPublicKey, type PublicKey, thumbprintOf } from '../../protocol/public-key.ts';
import { type Denial, deny } from '../../protocol/reasons.ts';
import { verifySignature } from '../../protocol/signature.ts';
import { MAX_PROOF_TTL_SECONDS } from '../../protocol/transcript.ts';
import type { Caller } from '../caller.ts';
import type { PassportCache } from '../passport-cache.ts';
import { passportClaimsAllowed } from './passport-claims.ts';

/** A derived key's passports live at most this long; a broker's as its bundle entry says. */
const DERIVED_KEY_PASSPORT_TTL_SECONDS = 300;

export interface ProofCheck {
  readonly credentials: Credentials;
  readonly caller: Caller;
  readonly route: Route;
  readonly nowSeconds: number;
  readonly skewSeconds: number;
  readonly passports: PassportCache;
}

/** The holder key that made the proof, or the first fault; the binding to the request comes after. */
export function verifyCredentials(check: ProofCheck): PublicKey | Denial {
  const { passport, proof } = check.credentials;
  const key = findLiveKey(check);
  if ('kind' in key && key.kind === 'denied') return key;
  const holder = verifyPassportSignature(passport, key, check);
  if (holder === undefined) return deny('invalid_request_proof', 'passport_signature');
  if (holder === 'refused' || !passportClaimsAllowed(passport, key, holder)) {
    return deny('invalid_request_proof', 'claims_not_allowed');
  }
  return (
    checkPassportTimes(passport, key, check) ??
    checkAudience(passport, check.route) ??
    checkProofSignature(proof, holder) ??
    checkProofTimes(proof, check) ??
    holder
  );
}

/** A key's start has the site's skew; its end has no grace. Source: docs/protocol.md "Transcript". */
function findLiveKey({ caller, nowSeconds, skewSeconds }: ProofCheck): BundleKey | Denial {
  const key = caller.bundleKey;
  if (key === undefined) return deny('invalid_request_proof', 'key_unknown');
  if (key.kind === 'derived_key') {
    if (key.status === 'revoked') return deny('invalid_request_proof', 'key_revoked');
    return nowSeconds < key.expiresAtSeconds ? key : deny('invalid_request_proof', 'key_expired');
  }
  if (key.notBeforeSeconds !== undefined && nowSeconds < key.notBeforeSeconds - skewSeconds) {
    return deny('invalid_request_proof', 'key_not_yet_valid');
  }
  if (key.notAfterSeconds !== undefined && !(nowSeconds < key.notAfterSeconds)) {
    return deny('invalid_request_proof', 'key_expired');
  }
  return key;
}

/** The holder key; `refused` when its point is; undefined when the signature does not hold. */
function verifyPassportSignature(
  passport: Passport,
  bundleKey: BundleKey,
  { nowSeconds, passports }: ProofCheck,
): PublicKey | 'refused' | undefined {
  const { key } = bundleKey;
  if (passport.algorithm !== key.algorithm) return undefined;
  const known = passports.get(passport.sha256);
  if (known?.verifiedByThumbprint === key.thumbprint) return known.holder ?? 'refused';
  if (!verifySignature(key, passport.signingInput, passport.signature)) return undefined;
  const { holderJwk } = passport.claims;
  const remember = (holder: PublicKey | undefined) =>
    passports.remember({ passport, verifiedByThumbprint: key.thumbprint, holder }, nowSeconds);
  const isOwnKey = thumbprintOf(holderJwk) === key.thumbprint;
  if (bundleKey.kind === 'derived_key') {
    // Its holder can sign any number of passports: others' points are not worth checking, and what it may not say
    // is not worth a place among the good ones.
    if (!isOwnKey) return 'refused';
    if (passportClaimsAllowed(passport, bundleKey, key)) remember(key);
    return key;
  }
  const holder = isOwnKey ? key : importPublicKey(holderJwk);
  remember(holder);
  return holder ?? 'refused';
}

function checkPassportTimes(
  { claims }: Passport,
  key: BundleKey,
  { nowSeconds, skewSeconds }: ProofCheck,
): Denial | undefined {
  const ttlSeconds = claims.expiresAtSeconds - claims.issuedAtSeconds;
  const mostSeconds =
    key.kind === 'derived_key' ? DERIVED_KEY_PASSPORT_TTL_SECONDS : key.issuer.maxPassportTtlSeconds;
  if (ttlSeconds < 1 || ttlSeconds > mostSeconds) return deny('invalid_request_proof', 'passport_ttl');
  const startSeconds = Math.max(claims.issuedAtSeconds, claims.notBeforeSeconds ?? 0);
  if (nowSeconds < startSeconds - skewSeconds) {
    return deny('invalid_request_proof', 'passport_not_yet_valid');
  }
  return nowSeconds < claims.expiresAtSeconds + skewSeconds
    ? undefined
    : deny('invalid_request_proof', 'passport_expired');
}

function checkAudience({ claims }: Passport, route: Route): Denial | undefined {
  return claims.audience === route.audience ? undefined : deny('invalid_request_proof', 'audience');
}

function checkProofSignature(proof: Proof, holder: PublicKey): Denial | undefined {
  return verifySignature(holder, proof.transcriptBytes, proof.signature)
    ? undefined
    : deny('invalid_request_proof', 'proof_signature');
}

function checkProofTimes({ transcript }: Proof, { nowSeconds, skewSeconds }: ProofCheck): Denial | undefined {
  const { issuedAtSeconds, expiresAtSeconds } = transcript;
  const ttlSeconds = expiresAtSeconds - issuedAtSeconds;
  if (ttlSeconds < 1 || ttlSeconds > MAX_PROOF_TTL_SECONDS) return deny('invalid_request_proof', 'proof_ttl');
  if (nowSeconds < issuedAtSeconds - skewSeconds) {
    return deny('invalid_request_proof', 'proof_not_yet_valid');
  }
  return nowSeconds < expiresAtSeconds + skewSeconds
    ? undefined
    : deny('invalid_request_proof', 'proof_expired');
}
