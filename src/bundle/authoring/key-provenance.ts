/** Provenance of a derived key in a bundle, from what Control keeps of its enrollment. */
import { isIdentifier } from '../../protocol/identifiers.ts';
import { MAX_ATTRIBUTES } from '../../protocol/limits.ts';

export interface KeyEnrollment {
  readonly policyId: string;
  readonly sourceId: string;
  readonly verifiedIssuer: string;
  readonly verifiedSubject: string;
}

/**
 * Token values that are too long or use other characters are left out, so that they cannot block a site's publication; a
 * route that requires such an entry denies the key. Every derived key has the first four entries, which values from its
 * enrollment cannot replace.
 * @param claims other claims of the token
 */
export function keyProvenance(
  { policyId, sourceId, verifiedIssuer, verifiedSubject }: KeyEnrollment,
  claims: { readonly [name: string]: string },
): { readonly [name: string]: string } {
  const entries = {
    enrollment_policy: policyId,
    source: sourceId,
    verified_issuer: verifiedIssuer,
    verified_subject: verifiedSubject,
  };
  const others = Object.entries(claims).filter(([name]) => !Object.hasOwn(entries, name));
  const sound = [...Object.entries(entries), ...others].filter(
    ([name, value]) => isIdentifier(name) && isIdentifier(value),
  );
  return Object.fromEntries(sound.slice(0, MAX_ATTRIBUTES));
}
