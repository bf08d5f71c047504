/** Reads, inside a transaction, the facts that decide whether a policy accepts an enrollment. */
import type { PolicyFacts, SubmissionFacts } from '../domain/enrollment-rules.ts';
import type { RowOf } from '../store/repositories/records.ts';
import type { Transaction } from '../store/transaction.ts';

/** Whether policies or enrollments name the same revision, which a number alone does not: each source has a revision 1. */
export function isBoundTo(
  one: Pick<RowOf<'enrollmentPolicy'>, 'sourceId' | 'sourceRevision'>,
  other: Pick<RowOf<'enrollmentPolicy'>, 'sourceId' | 'sourceRevision'>,
): boolean {
  return one.sourceId === other.sourceId && one.sourceRevision === other.sourceRevision;
}

export async function policyFacts(
  tx: Transaction,
  policy: Pick<RowOf<'enrollmentPolicy'>, 'state' | 'sourceId' | 'sourceRevision' | 'verifiedIssuer'>,
): Promise<PolicyFacts> {
  const revisions = await tx.sources.revisions(policy.sourceId);
  const bound = revisions.find(({ revision }) => revision === policy.sourceRevision);
  return {
    policyState: policy.state,
    revisionState: bound?.state ?? 'removed',
    supersededByActive: revisions.some((row) => row.state === 'active' && row !== bound),
    hasOtherIssuer: bound !== undefined && bound.issuer !== policy.verifiedIssuer,
  };
}

/** @param tokenHash undefined before the token is verified; token facts are then left out */
export async function submissionFacts(
  tx: Transaction,
  policy: RowOf<'enrollmentPolicy'>,
  thumbprint: string,
  tokenHash: string | undefined,
): Promise<SubmissionFacts> {
  const { siteId, verifiedIssuer, verifiedSubject, maxKeysPerToken } = policy;
  return {
    ...(await policyFacts(tx, policy)),
    subjectIsBlocked: await tx.keys.subjectIsBlocked(siteId, verifiedIssuer, verifiedSubject),
    publicKeyWasRevoked: await tx.keys.publicKeyWasRevoked(siteId, thumbprint),
    otherKeysOfToken:
      tokenHash === undefined ? 0 : await tx.enrollments.otherKeysOfToken(tokenHash, thumbprint),
    maxKeysPerToken,
  };
}
