/**
 * Accepts answers to challenges and turns them into enrollments.
 *
 * A challenge is consumed only when its answer becomes an enrollment. That requires a valid signature by the challenged
 * key, a fully verified token and a policy that accepts it. One transaction under the site's lock writes the enrollment,
 * the consumed challenge and, with automatic approval, the key. So a rejected submission leaves no trace, and the same
 * challenge can be answered again with a better token within its two minutes. That helps no attacker: only the holder
 * of the new private key can answer, each answer counts against the rate limit, and a token cannot be guessed. Nor can
 * anyone else consume a challenge.
 *
 * Repeating the same submission (challenge ID, token and signature) returns its enrollment while that exists, even after
 * the challenge's end. So does a submission of another token that the challenged key signed: a workload whose token was
 * replaced while it was away gets its enrollment, not a second one. That changes nothing, so Control does not verify the
 * token. Any other answer to a consumed challenge is `challenge_consumed`.
 *
 * Source: docs/design/enrollment.md "Enrollment".
 */
import { hash } from 'node:crypto';
import { decodeBase64url } from '../../protocol/base64url.ts';
import { enrollmentText } from '../../protocol/enrollment.ts';
import { verifySignature } from '../../protocol/verify-signature.ts';
import type { EnrollmentSubmission } from '../contract/enrollment-contract.ts';
import { ApiProblem } from '../domain/api-problem.ts';
import { type SubmissionProblem, submissionProblem } from '../domain/enrollment-rules.ts';
import { tokenHash, type VerifiedToken, verifyWorkloadToken } from '../issuers/workload-token.ts';
import { submissionFacts } from '../keys/policy-facts.ts';
import { keySourceOf } from '../sources/key-set-records.ts';
import type { ControlStore } from '../store/port.ts';
import type { RowOf } from '../store/repositories/records.ts';
import type { Transaction } from '../store/transaction.ts';
import { acceptSubmission, type VerifiedSubmission } from './acceptance.ts';
import { challengeText, type WorkloadContext } from './challenges.ts';
import type { EnrollmentAttempt } from './rejected-enrollments.ts';

export interface Submitted {
  readonly created: boolean;
  readonly enrollmentId: string;
}

/** Applies the policy's rate limit before any expensive work; may throw `rate_limited`. */
export type PolicyTurn = (policyReference: string) => Promise<void>;

/** State of a challenge, as one transaction saw it. */
type ChallengeState =
  | { readonly kind: 'answered'; readonly answered: Answered }
  | {
      readonly kind: 'open';
      readonly known: Case;
      /** Why it would be rejected now, whatever the token. */
      readonly problem: SubmissionProblem | undefined;
    };

/** The enrollment of a challenge. */
interface Answered {
  readonly enrollment: RowOf<'enrollment'>;
  /** Undefined when the policy was deleted and pruned. */
  readonly policy: RowOf<'enrollmentPolicy'> | undefined;
}

/** A challenge with its policy and source revision. */
interface Case {
  readonly challenge: RowOf<'challenge'>;
  readonly policy: RowOf<'enrollmentPolicy'>;
  readonly revision: RowOf<'sourceRevision'>;
}

/**
 * @throws ApiProblem `challenge_unknown`, `challenge_expired`, `challenge_consumed`, `signature_invalid`, `token_…`,
 *   `issuer_keys_unavailable`, `policy_not_active`, `policy_issuer_mismatch`, `policy_revision_outdated`, `source_not_active`,
 *   `subject_blocked`, `key_revoked`, `token_key_limit`; `unavailable` when the policy was changed meanwhile
 */
export async function submit(
  context: WorkloadContext,
  submission: EnrollmentSubmission,
  attempt: EnrollmentAttempt,
  takeTurn: PolicyTurn,
): Promise<Submitted> {
  const { store, nowMs } = context;
  const state = await store.read((tx) => challengeStateOf(tx, submission.challenge_id));
  if (state.kind === 'answered') {
    const { policyId: id, siteId } = state.answered.enrollment;
    attempt.policy = { id, siteId };
    return enrollmentOf(context, submission, state.answered, takeTurn);
  }
  const { known, problem } = state;
  attempt.policy = known.policy;
  if (nowMs() >= known.challenge.expiresAtMs) {
    const answered = await afterExpiry(store, known.challenge);
    return enrollmentOf(context, submission, answered, takeTurn);
  }
  await takeTurn(known.policy.reference);
  if (!isSigned(context, submission, known.challenge, known.policy))
    throw new ApiProblem('signature_invalid');
  // No token can change this result, so no issuer is asked.
  if (problem !== undefined) throw new ApiProblem(problem);
  const token = await verifyToken(context, submission.workload_token, known);
  attempt.token = token;
  const verified = {
    challengeId: known.challenge.id,
    policy: known.policy,
    submissionHash: hashOf(submission),
    tokenHash: tokenHash(submission.workload_token),
    token,
  };
  return accept(context, verified, known.challenge.siteId);
}

/**
 * `challenge_expired` promises that no enrollment exists. A copy of the submission may be in its transaction right now,
 * so check under the site's lock.
 */
function afterExpiry(store: ControlStore, { id, siteId }: RowOf<'challenge'>): Promise<Answered> {
  return store.writeUnaudited({ kind: 'site', siteId }, async (tx) => {
    const answered = await answeredOf(tx, id);
    if (answered === undefined) throw new ApiProblem('challenge_expired');
    return answered;
  });
}

/** @throws ApiProblem `challenge_consumed`, unless it is the same submission or the challenged key signed this one too */
async function enrollmentOf(
  context: WorkloadContext,
  submission: EnrollmentSubmission,
  { enrollment, policy }: Answered,
  takeTurn: PolicyTurn,
): Promise<Submitted> {
  if (enrollment.submissionHash !== hashOf(submission)) {
    if (policy === undefined) throw new ApiProblem('challenge_consumed');
    await takeTurn(policy.reference);
    const challenge = { ...enrollment, id: enrollment.challengeId };
    if (!isSigned(context, submission, challenge, policy)) throw new ApiProblem('challenge_consumed');
  }
  return { created: false, enrollmentId: enrollment.id };
}

/** Whether the challenged key signed the challenge, the token and this Control's URL. */
function isSigned(
  { keys, masterKeys, publicUrls }: WorkloadContext,
  { workload_token: workloadToken, signature }: EnrollmentSubmission,
  challenge: Pick<RowOf<'challenge'>, 'id' | 'policyId' | 'publicJwk' | 'thumbprint'>,
  { reference: policyReference }: RowOf<'enrollmentPolicy'>,
): boolean {
  const key = keys.stored(challenge.publicJwk);
  const bytes = decodeBase64url(signature);
  if (bytes === undefined) return false;
  const { id: challengeId, thumbprint: keyThumbprint } = challenge;
  const statement = { policyReference, challengeId, keyThumbprint, workloadToken };
  // During a rotation, the old master key may have made the challenge.
  const challenges = masterKeys.all.map((masterKey) => challengeText(masterKey, challenge));
  return publicUrls.some((controlUrl) =>
    challenges.some((text) =>
      verifySignature(key, enrollmentText({ ...statement, challenge: text, controlUrl }), bytes),
    ),
  );
}

/** May fetch the issuer's keys, so never call it inside a transaction. @throws ApiProblem */
async function verifyToken(
  { keySets, nowMs }: WorkloadContext,
  workloadToken: string,
  { policy, revision }: Case,
): Promise<VerifiedToken> {
  const source = keySourceOf(revision);
  const verified = await verifyWorkloadToken(workloadToken, {
    expected: {
      issuer: policy.verifiedIssuer,
      audience: revision.audience,
      subject: policy.verifiedSubject,
    },
    keysFor: (kid) => keySets.keysFor(source, kid),
    nowMs,
  });
  if (verified.kind === 'verified') return verified;
  const { code, detail, retryAfterSeconds } = verified;
  throw new ApiProblem(code, detail, retryAfterSeconds === undefined ? {} : { retryAfterSeconds });
}

async function accept(
  { store, nowMs }: WorkloadContext,
  verified: VerifiedSubmission,
  siteId: string,
): Promise<Submitted> {
  try {
    const enrollmentId = await store.mutate({ kind: 'site', siteId }, (tx) =>
      acceptSubmission(tx, verified, nowMs()),
    );
    return { created: true, enrollmentId };
  } catch (error) {
    if (!(error instanceof ApiProblem) || error.code !== 'challenge_consumed') throw error;
    // Consumed meanwhile, by another submission that the same key signed.
    const row = await store.read((tx) => tx.enrollments.byChallenge(verified.challengeId));
    if (row === undefined) throw error;
    return { created: false, enrollmentId: row.id };
  }
}

/** Injective, because the members are JSON strings. The hash reveals neither token nor signature. */
function hashOf({ challenge_id: id, workload_token: token, signature }: EnrollmentSubmission): string {
  return hash('sha256', JSON.stringify(['proofgate-submission-v1', id, token, signature]), 'base64url');
}

/** @throws ApiProblem `challenge_unknown`, `policy_not_active`, `source_not_active` */
async function challengeStateOf(tx: Transaction, challengeId: string): Promise<ChallengeState> {
  const answered = await answeredOf(tx, challengeId);
  if (answered !== undefined) return { kind: 'answered', answered };
  const challenge = await tx.enrollments.challenge(challengeId);
  if (challenge === undefined) throw new ApiProblem('challenge_unknown');
  const policy = await tx.policies.find(challenge.policyId);
  // The policy was deleted and pruned.
  if (policy === undefined) throw new ApiProblem('policy_not_active');
  const revision = await tx.sourceRevisions.find(policy.sourceId, policy.sourceRevision);
  if (revision === undefined) throw new ApiProblem('source_not_active');
  const problem = submissionProblem(await submissionFacts(tx, policy, challenge.thumbprint, undefined));
  return { kind: 'open', known: { challenge, policy, revision }, problem };
}

async function answeredOf(tx: Transaction, challengeId: string): Promise<Answered | undefined> {
  const enrollment = await tx.enrollments.byChallenge(challengeId);
  return enrollment && { enrollment, policy: await tx.policies.find(enrollment.policyId) };
}
