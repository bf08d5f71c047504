/** Reads a passport from a broker and checks that it matches the signing profile and the holder key. */
import { parsePassport } from '../protocol/passport.ts';
import { thumbprintOf } from '../protocol/public-key.ts';
import { ClientError } from './client-error.ts';
import type { SigningCoordinates } from './signing-profile.ts';

export interface PassportExpectation {
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
export function readBrokerPassport(
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
