/**
 * An operator's identity from ID token claims, and the principal names that role grants use for it.
 * Source: OpenID Connect Core 1.0 sections 2 and 5.1; docs/operate/control.md "Operators".
 */
import { ApiProblem } from '../domain/api-problem.ts';

export interface OperatorIdentity {
  readonly issuer: string;
  readonly subject: string;
  readonly displayName: string;
  readonly groups: readonly string[];
}

/** The operator's name in role grants and audit rows. An issuer is a URL, which contains no `|`. */
export function operatorPrincipal({ issuer, subject }: Pick<OperatorIdentity, 'issuer' | 'subject'>): string {
  return `oidc:${issuer}|${subject}`;
}

/** A group's name in role grants. */
export function groupPrincipal(name: string): string {
  return `group:${name}`;
}

/**
 * A session's public name: the beginning of its token's hash. It is not a credential, and no credential can be derived
 * from it.
 */
export function sessionIdOf(hash: string): string {
  return `ses_${hash.slice(0, 16)}`;
}

const MAX_GROUPS = 1000;
const MAX_NAME_CHARACTERS = 256;

/**
 * @param groupsClaim names a claim with a list of names, or one name; without that claim the operator has no groups
 * @throws ApiProblem `sign_in_refused` for unusable claims: guessing could give an operator another's roles
 */
export function claimedIdentity(
  claims: { readonly [claim: string]: unknown },
  groupsClaim: string | undefined,
): OperatorIdentity {
  const { iss, sub } = claims;
  if (typeof iss !== 'string' || !isName(iss) || iss.includes('|')) throw unusable('iss');
  if (typeof sub !== 'string' || !isName(sub)) throw unusable('sub');
  const groups = groupsClaim === undefined ? [] : groupNames(claims[groupsClaim], groupsClaim);
  return { issuer: iss, subject: sub, displayName: displayName(claims) ?? sub, groups };
}

function groupNames(value: unknown, claim: string): readonly string[] {
  if (value === undefined || value === null) return [];
  const names: readonly unknown[] = Array.isArray(value) ? value : [value];
  if (names.length > MAX_GROUPS) throw unusable(claim);
  const read = names.map((name) => {
    if (typeof name !== 'string' || !isName(name)) throw unusable(claim);
    return name;
  });
  return [...new Set(read)];
}

function displayName(claims: { readonly [claim: string]: unknown }): string | undefined {
  return [claims.name, claims.preferred_username, claims.email].find(
    (value): value is string => typeof value === 'string' && isName(value),
  );
}

/** Whether the text is safe in an audit row and on a terminal. */
function isName(text: string): boolean {
  return text.length > 0 && text.length <= MAX_NAME_CHARACTERS && !/\p{C}/u.test(text);
}

function unusable(claim: string): ApiProblem {
  return new ApiProblem('sign_in_refused', `the claim ${claim} cannot be used`);
}
