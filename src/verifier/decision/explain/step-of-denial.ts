/** Finds the step of a denial of which only reason and detail are known. */
import type { DetailOf, Reason } from '../../../protocol/reasons.ts';
import type { StepNumber } from './explain.ts';

type DeniedStep = Exclude<StepNumber, 7>;

/** Undefined when the verifier denied for lack of resources, outside of the steps. */
const STEP_OF_REASON: { readonly [R in Reason]: DeniedStep | undefined } = {
  bundle_policy_missing: 1,
  bundle_route_missing: 1,
  source_issuer_mismatch: 2,
  source_trust_domain_mismatch: 2,
  source_subject_mismatch: 2,
  insufficient_key_binding: 2,
  bundle_freshness_unknown: 3,
  stale_bundle_fail_closed: 3,
  missing_provenance: 4,
  provenance_mismatch: 4,
  missing_context: 4,
  context_mismatch: 4,
  invalid_request_proof: 5,
  request_binding_mismatch: 5,
  jti_replay: 6,
  replay_store_unavailable: 6,
  verifier_unavailable: undefined,
};

/** Step 1 reads the credentials. */
const UNREADABLE: readonly DetailOf['invalid_request_proof'][] = [
  'authorization_missing',
  'authorization_scheme',
  'passport_repeated',
  'passport_malformed',
  'proof_missing',
  'proof_malformed',
];

export function stepOfDenial(reason: Reason, detail: string | undefined): DeniedStep | undefined {
  const isUnreadable = reason === 'invalid_request_proof' && UNREADABLE.some((known) => known === detail);
  return isUnreadable ? 1 : STEP_OF_REASON[reason];
}
