/**
 * The closed set of denials: reason, detail and HTTP status. Reasons are the specification's "Denial reasons (adapter)"
 * plus `replay_store_unavailable` and `verifier_unavailable`; details and statuses are docs/design/protocol.md "Decision:
 * first fault wins".
 */

/** Lines of a transcript that can differ from the request; `header.<name>` is one for each signed header. */
export type TranscriptLineName =
  | 'auth-site'
  | 'key-id'
  | 'passport-sha256'
  | 'issuer'
  | 'subject'
  | 'audience'
  | 'route-id'
  | 'method'
  | 'scheme'
  | 'authority'
  | 'target'
  | 'content-sha256'
  | 'headers'
  | `header.${string}`;

/** Details of each reason. `string` means that the detail is a name from the bundle. */
export interface DetailOf {
  bundle_policy_missing: undefined;
  bundle_route_missing: 'path_not_canonical' | 'origin' | 'no_match';
  source_issuer_mismatch: undefined;
  source_trust_domain_mismatch: undefined;
  source_subject_mismatch: undefined | 'not_granted';
  insufficient_key_binding: undefined;
  bundle_freshness_unknown: undefined;
  stale_bundle_fail_closed: 'clock' | 'expired' | 'stale';
  missing_provenance: string;
  provenance_mismatch: string;
  missing_context: string;
  context_mismatch: string;
  invalid_request_proof:
    | 'authorization_missing'
    | 'authorization_scheme'
    | 'passport_repeated'
    | 'passport_malformed'
    | 'proof_missing'
    | 'proof_malformed'
    | 'proof_ambiguous'
    | 'key_unknown'
    | 'key_revoked'
    | 'key_not_yet_valid'
    | 'key_expired'
    | 'passport_signature'
    | 'claims_not_allowed'
    | 'subject_blocked'
    | 'holder_blocked'
    | 'token_not_accepted'
    | 'passport_ttl'
    | 'passport_not_yet_valid'
    | 'passport_expired'
    | 'audience'
    | 'proof_key'
    | 'proof_signature'
    | 'dpop_nonce'
    | 'proof_ttl'
    | 'proof_not_yet_valid'
    | 'proof_expired';
  /**
   * `component.<name>`: an HTTP message signature does not cover it. `ath`: a DPoP proof for another token. `query`, `body`: a DPoP
   * proof cannot bind it, and the route does not give it up.
   */
  request_binding_mismatch:
    | TranscriptLineName
    | 'body_unavailable'
    | 'content-digest'
    | 'ath'
    | 'query'
    | 'body'
    | `component.${string}`;
  jti_replay: undefined;
  replay_store_unavailable: 'store' | 'fenced' | 'quota';
  verifier_unavailable: 'overloaded' | 'audit' | 'unprotected' | 'internal';
}

export type Reason = keyof DetailOf;

/** HTTP status of each reason. Only the wrong audience departs from its reason's status (specification "HTTP statuses"). */
export const STATUS_OF_REASON: { readonly [R in Reason]: 401 | 403 | 503 } = {
  bundle_policy_missing: 503,
  bundle_route_missing: 403,
  source_issuer_mismatch: 403,
  source_trust_domain_mismatch: 403,
  source_subject_mismatch: 403,
  insufficient_key_binding: 403,
  bundle_freshness_unknown: 503,
  stale_bundle_fail_closed: 503,
  missing_provenance: 403,
  provenance_mismatch: 403,
  missing_context: 403,
  context_mismatch: 403,
  invalid_request_proof: 401,
  request_binding_mismatch: 403,
  jti_replay: 403,
  replay_store_unavailable: 503,
  verifier_unavailable: 503,
};

export const REASONS = Object.keys(STATUS_OF_REASON) as readonly Reason[];

export interface Denial {
  readonly kind: 'denied';
  readonly reason: Reason;
  readonly detail: string | undefined;
  readonly status: 401 | 403 | 503;
}

/** Builds a denial; the types tie each detail to its reason. */
export function deny<R extends Reason>(
  reason: R,
  ...detail: undefined extends DetailOf[R] ? [detail?: DetailOf[R]] : [detail: DetailOf[R]]
): Denial {
  const [text] = detail;
  const status = reason === 'invalid_request_proof' && text === 'audience' ? 403 : STATUS_OF_REASON[reason];
  return { kind: 'denied', reason, detail: text, status };
}

export function isDenial(value: object): value is Denial {
  return (value as { kind?: unknown }).kind === 'denied';
}

/**
 * Details that are codes, in contrast to names from the bundle or a request. The set is closed, so they may become
 * metric labels and appear in reports.
 */

type Fixed<D> = D extends string
  ? string extends D
    ? never
    : D extends `header.${string}` | `component.${string}`
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
  passport_repeated: true,
  passport_malformed: true,
  proof_missing: true,
  proof_malformed: true,
  proof_ambiguous: true,
  key_unknown: true,
  key_revoked: true,
  key_not_yet_valid: true,
  key_expired: true,
  passport_signature: true,
  claims_not_allowed: true,
  subject_blocked: true,
  holder_blocked: true,
  token_not_accepted: true,
  passport_ttl: true,
  passport_not_yet_valid: true,
  passport_expired: true,
  audience: true,
  proof_key: true,
  proof_signature: true,
  dpop_nonce: true,
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
  'content-digest': true,
  ath: true,
  query: true,
  body: true,
  headers: true,
  body_unavailable: true,
  store: true,
  fenced: true,
  quota: true,
  overloaded: true,
  audit: true,
  unprotected: true,
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

export function isNamingReason(reason: Reason): boolean {
  return Object.hasOwn(NAMING_REASONS, reason);
}

/**
 * The detail as a label: `header` for every signed header, `component` for every component, empty for an attribute's name or
 * without a detail.
 */
export function detailLabel({ detail, reason }: Denial): string {
  if (detail === undefined || isNamingReason(reason)) return '';
  for (const kind of DETAIL_KINDS) if (detail.startsWith(`${kind}.`)) return kind;
  return isKnownDetail(detail) ? detail : '';
}

/** Details that name a header or a component, and their labels. */
export const DETAIL_KINDS: readonly string[] = ['header', 'component'];

export function isKnownDetail(detail: string): boolean {
  return Object.hasOwn(DETAILS, detail);
}
