/** Details that a denial can have, of those that are no name: an audit event that is given may hold anything. */
import type { DetailOf, Reason } from '../../protocol/reasons.ts';

type Fixed<D> = D extends string
  ? string extends D
    ? never
    : D extends `header.${string}`
      ? never
      : D
  : never;
type FixedDetail = { readonly [R in Reason]: Fixed<DetailOf[R]> }[Reason];

const DETAILS: { readonly [D in FixedDetail]: true } = {
  path_not_canonical: true,
  origin: true,
  no_match: true,
  not_granted: true,
  clock: true,
  expired: true,
  stale: true,
  authorization_missing: true,
  authorization_scheme: true,
  passport_malformed: true,
  proof_missing: true,
  proof_malformed: true,
  key_unknown: true,
  key_revoked: true,
  key_not_yet_valid: true,
  key_expired: true,
  passport_signature: true,
  claims_not_allowed: true,
  passport_ttl: true,
  passport_not_yet_valid: true,
  passport_expired: true,
  audience: true,
  proof_signature: true,
  proof_ttl: true,
  proof_not_yet_valid: true,
  proof_expired: true,
  'auth-site': true,
  'key-id': true,
  'passport-sha256': true,
  issuer: true,
  subject: true,
  'route-id': true,
  method: true,
  scheme: true,
  authority: true,
  target: true,
  'content-sha256': true,
  headers: true,
  body_unavailable: true,
  store: true,
  fenced: true,
  quota: true,
  overloaded: true,
  audit: true,
  internal: true,
};

export function isKnownDetail(detail: string): boolean {
  return Object.hasOwn(DETAILS, detail);
}
