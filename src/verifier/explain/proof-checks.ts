/**
 * The parts of step 5 before the binding, by name. `steps/proof.ts` runs them in this order and tells its first fault:
 * the parts before it passed, those after it were not asked.
 * Source: docs/protocol.md "Decision: first fault wins", step 5.
 */
import type { PublicKey } from '../../protocol/public-key.ts';
import type { DetailOf } from '../../protocol/reasons.ts';
import { isAfter, type Verdict } from './verdicts.ts';
import type { Finding, Stage } from './walk.ts';

export type ProofCheckName =
  | 'key'
  | 'passport_signature'
  | 'claims'
  | 'passport_times'
  | 'audience'
  | 'proof_signature'
  | 'proof_times';

export interface ProofCheckVerdict {
  readonly check: ProofCheckName;
  readonly verdict: Verdict;
  readonly detail: string | undefined;
}

/** Details of step 1's reading of credentials have the same reason. */
type ProofDetail = Exclude<
  DetailOf['invalid_request_proof'],
  | 'authorization_missing'
  | 'authorization_scheme'
  | 'passport_malformed'
  | 'proof_missing'
  | 'proof_malformed'
>;

const CHECK_OF_DETAIL: { readonly [D in ProofDetail]: ProofCheckName } = {
  key_unknown: 'key',
  key_revoked: 'key',
  key_not_yet_valid: 'key',
  key_expired: 'key',
  passport_signature: 'passport_signature',
  claims_not_allowed: 'claims',
  passport_ttl: 'passport_times',
  passport_not_yet_valid: 'passport_times',
  passport_expired: 'passport_times',
  audience: 'audience',
  proof_signature: 'proof_signature',
  proof_ttl: 'proof_times',
  proof_not_yet_valid: 'proof_times',
  proof_expired: 'proof_times',
};

const CHECKS = [...new Set(Object.values(CHECK_OF_DETAIL))];

export function explainProofChecks(
  proof: Finding<PublicKey>,
  decidedAt: Stage | undefined,
): readonly ProofCheckVerdict[] {
  if (proof.kind === 'skipped') return CHECKS.map((check) => notReached(check));
  const after = isAfter('proof', decidedAt);
  const good = (check: ProofCheckName): ProofCheckVerdict => ({
    check,
    verdict: after ? 'would_pass' : 'passed',
    detail: undefined,
  });
  if (proof.kind === 'passed') return CHECKS.map(good);
  const { detail } = proof.denial;
  const at = CHECKS.findIndex((check) => isProofDetail(detail) && CHECK_OF_DETAIL[detail] === check);
  return CHECKS.map((check, index) => {
    if (index < at) return good(check);
    if (index > at) return notReached(check);
    return { check, verdict: after ? 'would_fail' : 'failed', detail };
  });
}

function notReached(check: ProofCheckName): ProofCheckVerdict {
  return { check, verdict: 'not_reached', detail: undefined };
}

function isProofDetail(detail: string | undefined): detail is ProofDetail {
  return detail !== undefined && Object.hasOwn(CHECK_OF_DETAIL, detail);
}
