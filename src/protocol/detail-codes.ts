/**
 * Details that are codes, in contrast to names from the bundle or a request. The set is closed, so they may become
 * metric labels and appear in reports.
 */
import type { Denial, DetailOf, Reason } from './reasons.ts';

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

/** Reasons whose details are attribute names. */
type NamingReason = { readonly [R in Reason]: string extends DetailOf[R] ? R : never }[Reason];

const NAMING_REASONS: { readonly [R in NamingReason]: true } = {
  missing_provenance: true,
  provenance_mismatch: true,
  missing_context: true,
  context_mismatch: true,
};

/** The detail as a label: `header` for every signed header, empty for an attribute's name or without a detail. */
export function detailLabel({ detail, reason }: Denial): string {
  if (detail === undefined || Object.hasOwn(NAMING_REASONS, reason)) return '';
  if (detail.startsWith('header.')) return 'header';
  return isKnownDetail(detail) ? detail : '';
}

export function isKnownDetail(detail: string): boolean {
  return Object.hasOwn(DETAILS, detail);
}
