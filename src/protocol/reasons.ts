/**
 * The closed set of denials: reason, detail and HTTP status. Reasons are the specification's "Denial reasons (adapter)"
 * plus `replay_store_unavailable` and `verifier_unavailable`; details and statuses are docs/protocol.md "Decision:
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
    | 'passport_malformed'
    | 'proof_missing'
    | 'proof_malformed'
    | 'key_unknown'
    | 'key_revoked'
    | 'key_not_yet_valid'
    | 'key_expired'
    | 'passport_signature'
    | 'claims_not_allowed'
    | 'passport_ttl'
    | 'passport_not_yet_valid'
    | 'passport_expired'
    | 'audience'
    | 'proof_signature'
    | 'proof_ttl'
    | 'proof_not_yet_valid'
    | 'proof_expired';
  request_binding_mismatch: TranscriptLineName | 'body_unavailable';
  jti_replay: undefined;
  replay_store_unavailable: 'store' | 'fenced' | 'quota';
  verifier_unavailable: 'overloaded' | 'audit' | 'internal';
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
