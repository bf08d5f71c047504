/**
 * Every error that Control returns, by stable code. Services throw {@link Refusal}; `api/problems.ts` turns it into a
 * problem (RFC 9457) with the status listed here.
 * Source: docs/control.md.
 */

/** HTTP status and title of each code. Codes are stable: clients switch on them. */
export const REFUSALS = {
  // Requests
  request_malformed: [400, 'The request does not have the expected shape'],
  authentication_required: [401, 'Sign in, or send a token'],
  sign_in_state_invalid: [400, 'This sign-in is over, or was begun in another browser; begin again'],
  sign_in_code_invalid: [401, 'The sign-in code is not valid, or no longer'],
  poll_unauthorized: [401, 'The Proofgate-Key authorization does not hold'],
  signature_invalid: [401, 'The signature does not hold'],
  permission_denied: [403, 'The role does not allow this here'],
  sign_in_refused: [403, 'The identity provider does not vouch for this sign-in'],
  origin_forbidden: [403, 'A browser of another origin sent this'],
  not_found: [404, 'There is no such resource'],
  sign_in_not_configured: [404, 'No identity provider is configured; use a token'],
  policy_unknown: [404, 'There is no such enrollment policy'],
  challenge_unknown: [404, 'There is no such challenge'],
  enrollment_unknown: [404, 'There is no such enrollment'],
  method_not_allowed: [405, 'The resource has no such method'],
  request_timeout: [408, 'The request took too long to come'],
  challenge_expired: [410, 'The challenge has expired; ask for another'],
  precondition_failed: [412, 'The resource was changed meanwhile; read it again'],
  request_too_large: [413, 'The body is too large'],
  media_type_unsupported: [415, 'Send application/json'],
  precondition_required: [428, 'Send If-Match with the ETag that was read'],
  headers_too_large: [431, 'The header fields are too large'],
  rate_limited: [429, 'Too many requests; wait as Retry-After says'],
  // Conflicts
  already_exists: [409, 'There is one of that name'],
  still_in_use: [409, 'Something else refers to it'],
  idempotency_conflict: [409, 'The same Idempotency-Key came with another request'],
  source_state_conflict: [409, "The source revision's state does not allow this"],
  source_scope_mismatch: [409, 'The detected issuer scope is not the expected one'],
  source_revision_in_progress: [409, 'Another revision of the source is on its way'],
  source_capacity_exhausted: [409, 'Every automated-source slot of the site is taken'],
  source_not_active: [409, 'The source is not active'],
  audience_taken: [409, 'The audience belongs to another Auth Site'],
  policy_state_conflict: [409, "The policy's state does not allow this"],
  policy_not_active: [409, 'The enrollment policy is not active'],
  policy_revision_outdated: [409, 'The policy is bound to a revision that is no longer the active one'],
  enrollment_state_conflict: [409, 'The enrollment is decided already'],
  enrollment_expired: [409, 'The key would have ended by now'],
  key_state_conflict: [409, 'The key is revoked already'],
  key_revoked: [409, 'This public key was revoked; make another'],
  token_key_limit: [409, 'The workload token has enrolled all the keys that it may'],
  challenge_consumed: [409, 'The challenge was used for another submission'],
  signing_key_state_conflict: [409, 'The key is not retiring, or ends no later'],
  target_state_conflict: [409, 'The target is detached'],
  revision_out_of_range: [409, 'The revision is too far above what was published'],
  // Invalid content
  unsupported_enrollment_provider: [422, 'Only oidc_jwks is supported'],
  public_key_invalid: [422, 'Not an Ed25519 public key that can be used'],
  reference_unknown: [422, 'The body refers to something that is not in this Auth Site'],
  policy_issuer_mismatch: [422, "The verified issuer is not the source revision's issuer"],
  verified_subject_invalid: [422, 'No workload token can have this subject'],
  definition_invalid: [422, 'The definition would not be taken by a verifier'],
  scope_invalid: [422, 'There is no such scope'],
  subject_blocked: [403, 'The subject is blocked'],
  token_malformed: [403, 'The workload token is malformed'],
  token_header: [403, "The workload token's header cannot be used"],
  token_algorithm: [403, "The workload token's algorithm is not allowed"],
  token_key_unknown: [403, "The workload token's key is not the issuer's"],
  token_signature: [403, "The workload token's signature does not hold"],
  token_issuer: [403, 'The workload token is of another issuer'],
  token_audience: [403, 'The workload token is for another audience'],
  token_subject: [403, 'The workload token is of another subject'],
  token_expiry_missing: [403, 'The workload token has no expiry'],
  token_lifetime: [403, 'The workload token lives too long'],
  token_expired: [403, 'The workload token has expired'],
  token_not_yet_valid: [403, 'The workload token is not valid yet'],
  token_claims: [403, "The workload token's claims cannot be used"],
  // Server errors
  internal: [500, 'Something went wrong here; nothing was changed'],
  issuer_keys_unavailable: [503, "The issuer's keys cannot be had"],
  identity_provider_unavailable: [503, 'The identity provider does not answer; try again'],
  unavailable: [503, 'The database does not answer; try again'],
} as const satisfies { readonly [code: string]: readonly [status: number, title: string] };

export type RefusalCode = keyof typeof REFUSALS;

/** `pointer`: a JSON Pointer (RFC 6901) into the resource, such as `/body/path_template`. */
export interface RefusalFault {
  readonly pointer: string;
  readonly reason: string;
}

export interface RefusalOptions {
  readonly retryAfterSeconds?: number;
  readonly faults?: readonly RefusalFault[];
}

/** Thrown inside a mutation, it rolls everything back. The message is for people and never holds a secret. */
export class Refusal extends Error {
  override readonly name = 'Refusal';
  readonly code: RefusalCode;
  /** Seconds until a retry makes sense. */
  readonly retryAfterSeconds: number | undefined;
  /** Each fault, where one request has several. */
  readonly faults: readonly RefusalFault[] | undefined;

  constructor(code: RefusalCode, detail?: string, options: RefusalOptions = {}) {
    super(detail ?? REFUSALS[code][1]);
    this.code = code;
    this.retryAfterSeconds = options.retryAfterSeconds;
    this.faults = options.faults;
  }
}
