/**
 * Every error that Control returns, by stable code. Services throw {@link ApiProblem}; `api/problems.ts` turns it into a
 * problem (RFC 9457) with the status listed here or in {@link COMMON_PROBLEMS}.
 * Source: docs/operate/control.md.
 */

import {
  COMMON_PROBLEMS,
  HttpProblem,
  type HttpProblemOptions,
  type ProblemRow,
} from '../../process/http-service/http-problem.ts';

/** HTTP status and title of each code. Codes are stable: clients switch on them. */
export const PROBLEMS = {
  ...COMMON_PROBLEMS,
  // Requests
  authentication_required: [401, 'Authentication required: sign in, or send a token'],
  sign_in_state_invalid: [400, 'The sign-in has ended or began in another browser; start again'],
  sign_in_code_invalid: [401, 'The sign-in code is invalid or has expired'],
  poll_unauthorized: [401, 'Invalid Proofgate-Key authorization'],
  signature_invalid: [401, 'Invalid signature'],
  permission_denied: [403, 'The role does not permit this operation in this scope'],
  sign_in_refused: [403, 'The identity provider rejected this sign-in'],
  origin_forbidden: [403, 'The request comes from another origin'],
  bootstrap_sign_in_local: [403, 'The bootstrap token signs in only on the machine of Control'],
  sign_in_not_configured: [404, 'No identity provider is configured; use a token'],
  policy_unknown: [404, 'The enrollment policy does not exist'],
  revision_not_held: [404, 'Control no longer holds this revision, or never published it'],
  challenge_unknown: [404, 'The challenge does not exist'],
  enrollment_unknown: [404, 'The enrollment does not exist'],
  challenge_expired: [410, 'The challenge has expired; request a new one'],
  host_unknown: [421, 'The request names a host that is not in --public-url'],
  precondition_failed: [412, 'The resource has changed; read it again'],
  too_many_streams: [429, 'Too many open streams of changes; close another one'],
  precondition_required: [428, 'Send If-Match with the ETag that was read'],
  // Conflicts
  already_exists: [409, 'A resource with this name exists'],
  broker_ambiguous: [409, 'The issuer has brokers for several trust domains; name one'],
  member_fixed: [409, 'The member cannot change'],
  broker_keys_differ: [409, 'A declaration never changes pinned keys'],
  still_in_use: [409, 'Another resource refers to it'],
  idempotency_conflict: [409, 'The Idempotency-Key was used with another request'],
  source_state_conflict: [409, "The source revision's state does not allow this"],
  source_scope_mismatch: [409, 'The detected issuer scope differs from the expected one'],
  source_revision_in_progress: [409, 'Another revision of the source is in progress'],
  source_capacity_exhausted: [409, 'All automated-source slots of the site are in use'],
  source_not_active: [409, 'The source is not active'],
  audience_taken: [409, 'The audience belongs to another Auth Site'],
  policy_state_conflict: [409, "The policy's state does not allow this"],
  policy_not_active: [409, 'The enrollment policy is not active'],
  policy_revision_outdated: [409, 'The policy is bound to a revision that is no longer active'],
  enrollment_state_conflict: [409, 'The enrollment has already been decided'],
  enrollment_expired: [409, 'The key would already have expired'],
  key_state_conflict: [409, 'The key is already revoked'],
  key_not_revoked: [409, 'The key is not revoked, so that there is no receipt'],
  key_revoked: [409, 'This public key was revoked; generate a new one'],
  token_key_limit: [409, 'The workload token has enrolled its maximum number of keys'],
  challenge_consumed: [409, 'The challenge was used for another submission'],
  signing_key_state_conflict: [409, 'The key is not retiring, or already ends sooner'],
  target_state_conflict: [409, 'The target is detached'],
  target_too_old: [409, 'A verifier of the Auth Site does not know this setting; upgrade it first'],
  revision_out_of_range: [409, 'The revision is too far above the published one'],
  // Invalid content
  unsupported_enrollment_provider: [422, 'Only oidc_jwks is supported'],
  public_key_invalid: [422, 'Not a usable Ed25519 public key'],
  request_not_json: [422, 'The captured request is not valid JSON'],
  request_invalid: [422, 'The captured request cannot be read'],
  proof_not_expired: [422, 'The proof could still be used: wait, or remove its signature'],
  reference_unknown: [422, 'The body refers to something that is not in this Auth Site'],
  policy_issuer_mismatch: [422, "The verified issuer is not the source revision's issuer"],
  verified_subject_invalid: [422, 'No workload token can have this subject'],
  definition_invalid: [422, 'A verifier would reject the definition'],
  scope_invalid: [422, 'The scope does not exist'],
  subject_blocked: [403, 'The subject is blocked'],
  token_malformed: [403, 'The workload token is malformed'],
  token_header: [403, "The workload token's header is not acceptable"],
  token_algorithm: [403, "The workload token's algorithm is not allowed"],
  token_key_unknown: [403, "The workload token's key does not belong to the issuer"],
  token_signature: [403, "The workload token's signature is invalid"],
  token_issuer: [403, 'The workload token has another issuer'],
  token_audience: [403, 'The workload token has another audience'],
  token_subject: [403, 'The workload token has another subject'],
  token_expiry_missing: [403, 'The workload token has no expiry'],
  token_lifetime: [403, 'The workload token is valid for too long'],
  token_expired: [403, 'The workload token has expired'],
  token_not_yet_valid: [403, 'The workload token is not valid yet'],
  token_claims: [403, "The workload token's claims are not acceptable"],
  // Server errors
  issuer_keys_unavailable: [503, "The issuer's keys are unavailable"],
  identity_provider_unavailable: [503, 'The identity provider does not answer; try again'],
  unavailable: [503, 'The database does not answer; try again'],
} as const satisfies { readonly [code: string]: ProblemRow };

export type ProblemCode = keyof typeof PROBLEMS;

/** Thrown inside a mutation, it rolls everything back. */
export class ApiProblem extends HttpProblem<ProblemCode> {
  override readonly name = 'ApiProblem';

  constructor(code: ProblemCode, detail?: string, options: HttpProblemOptions = {}) {
    super(code, PROBLEMS[code], detail, options);
  }
}
