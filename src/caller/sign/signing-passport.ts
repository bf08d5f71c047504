/** The passport of a proof, which the key signs itself or a broker issued. */

import { ClientError } from '../../protocol/client-error.ts';
import { MAX_PASSPORT_BYTES } from '../../protocol/limits.ts';
import { parsePassport, passportSha256 } from '../../protocol/passport.ts';
import { thumbprintOf } from '../../protocol/public-key.ts';
import { type SigningKey, signPassport } from '../../protocol/signing.ts';
import type { SigningCoordinates } from '../../protocol/signing-profile.ts';

export interface SigningPassport {
  /** Compact JWS. */
  readonly jws: string;
  readonly sha256: string;
  readonly keyId: string;
  readonly expiresAtSeconds: number;
}

export interface PassportTimes {
  readonly issuedAtSeconds: number;
  readonly expiresAtSeconds: number;
}

export interface OwnPassport extends PassportTimes {
  readonly key: SigningKey;
  readonly coordinates: SigningCoordinates;
  readonly audience: string;
  /** The `jti` of the passport. */
  readonly passportId: string;
}

/**
 * The `key_id` of a key that speaks for itself.
 * @throws ClientError `key_id_missing`, `passport_required`
 */
export function requireOwnKey({ keyBinding, keyId }: SigningCoordinates): string {
  if (keyId === undefined) {
    throw new ClientError('key_id_missing', 'the profile file names no key_id, and no passport is given');
  }
  if (keyBinding !== 'software') {
    throw new ClientError(
      'passport_required',
      `a key may not attest ${keyBinding} for itself: a broker's passport is needed`,
    );
  }
  return keyId;
}

/**
 * A passport that a derived key signs for itself.
 * @throws ClientError as {@link requireOwnKey}, or `credentials_too_large`
 */
export function signOwnPassport({ audience, coordinates, key, ...rest }: OwnPassport): SigningPassport {
  const { keyBinding, issuer, subject, trustDomain } = coordinates;
  const keyId = requireOwnKey(coordinates);
  const holderJwk = key.publicKey.jwk;
  const claims = { keyId, issuer, subject, trustDomain, audience, keyBinding, holderJwk, ...rest };
  const jws = signPassport(claims, key);
  if (jws.length > MAX_PASSPORT_BYTES) throw credentialsTooLarge();
  const sha256 = passportSha256(jws);
  if (parsePassport(jws, sha256) === undefined) throw new Error('a passport that no verifier reads');
  return { jws, sha256, keyId, expiresAtSeconds: rest.expiresAtSeconds };
}

export interface PassportExpectation {
  readonly coordinates: SigningCoordinates;
  readonly audience: string;
  /** RFC 7638 thumbprint of the key that will sign the proof. */
  readonly holderThumbprint: string;
}

/**
 * Reads a passport from a broker and checks that it matches the signing profile and the holder key. Its signature is not
 * checked: only the verifier knows the broker's key.
 * @param text compact JWS, optionally with a trailing line break
 * @throws ClientError `passport_malformed`, `passport_mismatch`
 */
export function readBrokerPassport(
  text: string,
  { audience, coordinates, holderThumbprint }: PassportExpectation,
): SigningPassport {
  const jws = text.trim();
  const passport = parsePassport(jws);
  if (passport === undefined) {
    throw new ClientError('passport_malformed', 'the passport is not one of Proofgate');
  }
  const { claims, keyId, sha256 } = passport;
  requireEqual('iss', claims.issuer, coordinates.issuer);
  requireEqual('sub', claims.subject, coordinates.subject);
  requireEqual('trust_domain', claims.trustDomain, coordinates.trustDomain);
  requireEqual('key_binding', claims.keyBinding, coordinates.keyBinding);
  requireEqual('aud', claims.audience, audience);
  requireEqual('cnf', thumbprintOf(claims.holderJwk), holderThumbprint);
  return { jws, sha256, keyId, expiresAtSeconds: claims.expiresAtSeconds };
}

function requireEqual(claim: string, actual: string, expected: string): void {
  if (actual !== expected) {
    throw new ClientError('passport_mismatch', `the passport's ${claim} is not the one of profile and key`);
  }
}

export function credentialsTooLarge(): ClientError {
  return new ClientError(
    'credentials_too_large',
    'passport or proof is longer than verifiers read: URL or headers are too long',
  );
}
