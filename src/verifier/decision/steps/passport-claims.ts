/**
 * Part of step 5: the claims of a passport stay within what its signing key may state.
 * Source: docs/protocol.md "Passport".
 */
import type { BundleKey, DerivedKey, IssuerKey } from '../../../bundle/compile/snapshot.ts';
import { satisfiesKeyBinding } from '../../../protocol/identifiers.ts';
import type { Attributes, Passport, PassportClaims } from '../../../protocol/passport.ts';
import type { PublicKey } from '../../../protocol/public-key.ts';
import { subjectLiesInTrustDomain } from '../../../protocol/spiffe-id.ts';

export function passportClaimsAllowed({ claims }: Passport, key: BundleKey, holder: PublicKey): boolean {
  return key.kind === 'derived_key'
    ? allowedForDerivedKey(claims, key, holder)
    : allowedForIssuer(claims, key);
}

/** A derived key signs its own passport and states exactly what the bundle states about it. */
function allowedForDerivedKey(claims: PassportClaims, key: DerivedKey, holder: PublicKey): boolean {
  const { client } = key;
  return (
    holder.thumbprint === key.key.thumbprint &&
    claims.issuer === client.issuer &&
    claims.trustDomain === client.trustDomain &&
    claims.subject === client.subject &&
    claims.keyBinding === 'software' &&
    absentOrEqual(claims.provenance, key.provenance) &&
    absentOrEqual(claims.context, client.context)
  );
}

function allowedForIssuer(claims: PassportClaims, { issuer }: IssuerKey): boolean {
  return (
    claims.issuer === issuer.issuer &&
    claims.trustDomain === issuer.trustDomain &&
    issuer.subjectPrefixes.some((prefix) => claims.subject.startsWith(prefix)) &&
    subjectLiesInTrustDomain(claims.subject, claims.trustDomain) &&
    satisfiesKeyBinding(issuer.keyBinding, claims.keyBinding)
  );
}

function absentOrEqual(claimed: Attributes | undefined, actual: Attributes): boolean {
  if (claimed === undefined) return true;
  if (claimed.size !== actual.size) return false;
  for (const [name, value] of claimed) if (actual.get(name) !== value) return false;
  return true;
}
