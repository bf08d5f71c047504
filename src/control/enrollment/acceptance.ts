/**
 * Turns a verified submission into an enrollment, in one transaction that reads every fact again.
 * Source: docs/design/enrollment.md "Enrollment".
 */

import { ApiProblem } from '../domain/api-problem.ts';
import { keyExpirySeconds, submissionProblem } from '../domain/enrollment-rules.ts';
import { newId } from '../domain/resource-identifiers.ts';
import type { ScopePath } from '../domain/roles.ts';
import type { VerifiedToken } from '../issuers/workload-token.ts';
import { enrollmentView } from '../keys/enrollment-views.ts';
import { issueKey } from '../keys/outcomes.ts';
import { isBoundTo, submissionFacts } from '../keys/policy-facts.ts';
import { audited, newVersion } from '../resource/change.ts';
import type { AuditEntry, Mutated } from '../store/port.ts';
import type { RowOf } from '../store/repositories/records.ts';
import type { Transaction } from '../store/transaction.ts';

/** A submission with verified signature and token, and the policy that they were verified against. */
export interface VerifiedSubmission {
  readonly challengeId: string;
  readonly policy: RowOf<'enrollmentPolicy'>;
  readonly submissionHash: string;
  readonly tokenHash: string;
  readonly token: VerifiedToken;
}

/** Call it under the site's lock. @returns the enrollment's ID @throws ApiProblem */
export async function acceptSubmission(
  tx: Transaction,
  verified: VerifiedSubmission,
  nowMs: number,
): Promise<Mutated<string>> {
  const challenge = await requireOpenChallenge(tx, verified.challengeId, nowMs);
  const policy = await tx.policies.find(challenge.policyId);
  if (policy === undefined) throw new ApiProblem('policy_not_active');
  if (!isBoundTo(policy, verified.policy)) {
    // The token was verified against another revision. A retry verifies it against the current one.
    throw new ApiProblem('unavailable', 'the policy has changed; submit again');
  }
  const facts = await submissionFacts(tx, policy, challenge.thumbprint, verified.tokenHash);
  const problem = submissionProblem(facts);
  if (problem !== undefined) throw new ApiProblem(problem);
  const waiting = newEnrollment({ challenge, policy, verified }, nowMs);
  const place = (await tx.hierarchy.placeOfSite(policy.siteId)) ?? { siteId: policy.siteId };
  const by = { actor: `workload:${waiting.verifiedIssuer}|${waiting.verifiedSubject}` };
  const issued =
    policy.approval === 'automatic' ? await issueKey({ tx, place }, waiting, by, nowMs) : undefined;
  const row = issued === undefined ? waiting : decidedByControl(waiting, issued.keyId, nowMs);
  await tx.enrollments.add(row);
  if (!(await tx.enrollments.consumeChallenge(challenge.id, row.id)))
    throw new ApiProblem('challenge_consumed');
  const submitted = submissionAudit(row, place, by.actor, facts.otherKeysOfToken);
  return { result: row.id, audit: issued === undefined ? [submitted] : [submitted, issued.audit] };
}

/** @throws ApiProblem */
async function requireOpenChallenge(
  tx: Transaction,
  challengeId: string,
  nowMs: number,
): Promise<RowOf<'challenge'>> {
  const challenge = await tx.enrollments.challenge(challengeId);
  if (challenge === undefined) throw new ApiProblem('challenge_unknown');
  if (challenge.enrollmentId !== null) throw new ApiProblem('challenge_consumed');
  if (nowMs >= challenge.expiresAtMs) throw new ApiProblem('challenge_expired');
  return challenge;
}

interface Acceptance {
  readonly challenge: RowOf<'challenge'>;
  readonly policy: RowOf<'enrollmentPolicy'>;
  readonly verified: VerifiedSubmission;
}

/** @throws ApiProblem `token_expired` when a key would expire at once */
function newEnrollment({ challenge, policy, verified }: Acceptance, nowMs: number): RowOf<'enrollment'> {
  const { token } = verified;
  const acceptedAtSeconds = Math.floor(nowMs / 1000);
  const keyExpiresAtSeconds = keyExpirySeconds({
    tokenExpiresAtSeconds: token.expiresAtSeconds,
    acceptedAtSeconds,
    maxKeyLifetimeSeconds: policy.maxKeyLifetimeSeconds,
  });
  if (keyExpiresAtSeconds <= acceptedAtSeconds) throw new ApiProblem('token_expired');
  return {
    id: newId('enrollment', nowMs),
    siteId: policy.siteId,
    policyId: policy.id,
    clientId: policy.clientId,
    sourceId: policy.sourceId,
    sourceRevision: policy.sourceRevision,
    challengeId: challenge.id,
    submissionHash: verified.submissionHash,
    publicJwk: challenge.publicJwk,
    thumbprint: challenge.thumbprint,
    state: 'pending_approval',
    tokenHash: verified.tokenHash,
    tokenExpiresAtSeconds: token.expiresAtSeconds,
    tokenKeyThumbprint: token.keyThumbprint,
    keyExpiresAtSeconds,
    verifiedIssuer: token.issuer,
    verifiedSubject: token.subject,
    provenance: JSON.stringify(token.provenance),
    denialCode: null,
    decidedBy: null,
    decidedAtMs: null,
    keyId: null,
    ...newVersion(nowMs),
  };
}

function decidedByControl(row: RowOf<'enrollment'>, keyId: string, decidedAtMs: number): RowOf<'enrollment'> {
  return { ...row, state: 'issued', decidedBy: 'control', decidedAtMs, keyId };
}

function submissionAudit(
  row: RowOf<'enrollment'>,
  place: ScopePath,
  actor: string,
  otherKeysOfToken: number,
): AuditEntry {
  const after = { ...enrollmentView(row), other_keys_of_token: otherKeysOfToken };
  return audited({ actor }, { what: 'enrollment.submit', id: row.id, place, after });
}
