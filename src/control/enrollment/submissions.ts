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
 * the challenge's end. Any other answer to a consumed challenge is `challenge_consumed`.
 *
 * Source: docs/control.md "Enrollment".
 */
import { hash } from 'node:crypto';
import type { EnrollmentSubmission } from '../../api-contract/enrollment-contract.ts';
import { decodeBase64url } from '../../protocol/base64url.ts';
import { enrollmentText } from '../../protocol/enrollment.ts';
import { verifySignature } from '../../protocol/verify-signature.ts';
import { ApiProblem } from '../domain/api-problem.ts';
import { type SubmissionProblem, submissionProblem } from '../domain/enrollment-rules.ts';
import { tokenHash, type VerifiedToken, verifyWorkloadToken } from '../issuers/workload-token.ts';
import { keySourceOf } from '../sources/key-set-records.ts';
import type { ControlStore } from '../store/port.ts';
import type { RowOf } from '../store/repositories/records.ts';
import type { Transaction } from '../store/transaction.ts';
import { acceptSubmission, type VerifiedSubmission } from './acceptance.ts';
import { challengeText, type WorkloadContext } from './challenges.ts';
import { submissionFacts } from './policy-facts.ts';
import type { EnrollmentAttempt } from './rejected-enrollments.ts';

export interface Submitted {
  readonly created: boolean;
  readonly enrollmentId: string;
}

/** Applies the policy's rate limit before any expensive work; may throw `rate_limited`. */
export type PolicyTurn = (policyReference: string) => Promise<void>;

/** State of a challenge, as one transaction saw it. */
type ChallengeState =
  | { readonly kind: 'answered'; readonly enrollment: RowOf<'enrollment'> }
  | {
      readonly kind: 'open';
      readonly known: Case;
      /** Why it would be rejected now, whatever the token. */
      readonly problem: SubmissionProblem | undefined;
    };

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
  const submissionHash = hashOf(submission);
  const state = await store.read((tx) => challengeStateOf(tx, submission.challenge_id));
  if (state.kind === 'answered') {
    const { policyId: id, siteId } = state.enrollment;
    attempt.policy = { id, siteId };
    return sameSubmission(state.enrollment, submissionHash);
  }
  const { known, problem } = state;
  attempt.policy = known.policy;
  if (nowMs() >= known.challenge.expiresAtMs) return afterExpiry(store, known.challenge, submissionHash);
  await takeTurn(known.policy.reference);
  checkSignature(context, submission, known);
  // No token can change this result, so no issuer is asked.
  if (problem !== undefined) throw new ApiProblem(problem);
  const token = await verifyToken(context, submission.workload_token, known);
  attempt.token = token;
  const verified = {
    challengeId: known.challenge.id,
    policy: known.policy,
    submissionHash,
    tokenHash: tokenHash(submission.workload_token),
    token,
  };
  return accept(context, verified, known.challenge.siteId);
}

/**
 * `challenge_expired` promises that no enrollment exists. A copy of the submission may be in its transaction right now,
 * so check under the site's lock.
 */
function afterExpiry(
  store: ControlStore,
  { id, siteId }: RowOf<'challenge'>,
  submissionHash: string,
): Promise<Submitted> {
  return store.writeUnaudited({ kind: 'site', siteId }, async (tx) => {
    const row = await tx.enrollments.byChallenge(id);
    if (row === undefined) throw new ApiProblem('challenge_expired');
    return sameSubmission(row, submissionHash);
  });
}

/** Verifies the new key's signature over the challenge and this Control's URL. @throws ApiProblem `signature_invalid` */
function checkSignature(
  { keys, masterKeys, publicUrls }: WorkloadContext,
  { workload_token: workloadToken, signature }: EnrollmentSubmission,
  { challenge, policy }: Case,
): void {
  const key = keys.stored(challenge.publicJwk);
  const bytes = decodeBase64url(signature);
  if (bytes === undefined) throw new ApiProblem('signature_invalid');
  const statement = {
    policyReference: policy.reference,
    challengeId: challenge.id,
    keyThumbprint: challenge.thumbprint,
    workloadToken,
  };
  // During a rotation, the old master key may have made the challenge.
  const challenges = masterKeys.all.map((masterKey) => challengeText(masterKey, challenge));
  const isSigned = publicUrls.some((controlUrl) =>
    challenges.some((text) =>
      verifySignature(key, enrollmentText({ ...statement, challenge: text, controlUrl }), bytes),
    ),
  );
  if (!isSigned) throw new ApiProblem('signature_invalid');
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
    // Perhaps consumed by a copy of this submission.
    const row = await store.read((tx) => tx.enrollments.byChallenge(verified.challengeId));
    if (row === undefined) throw error;
    return sameSubmission(row, verified.submissionHash);
  }
}

/** Injective, because the members are JSON strings. The hash reveals neither token nor signature. */
function hashOf({ challenge_id: id, workload_token: token, signature }: EnrollmentSubmission): string {
  return hash('sha256', JSON.stringify(['proofgate-submission-v1', id, token, signature]), 'base64url');
}

/** @throws ApiProblem `challenge_consumed` */
function sameSubmission(row: RowOf<'enrollment'>, submissionHash: string): Submitted {
  if (row.submissionHash !== submissionHash) throw new ApiProblem('challenge_consumed');
  return { created: false, enrollmentId: row.id };
}

/** @throws ApiProblem `challenge_unknown`, `policy_not_active`, `source_not_active` */
async function challengeStateOf(tx: Transaction, challengeId: string): Promise<ChallengeState> {
  const enrollment = await tx.enrollments.byChallenge(challengeId);
  if (enrollment !== undefined) return { kind: 'answered', enrollment };
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
