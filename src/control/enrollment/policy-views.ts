/** API views of enrollment policies for operators. */

import type { EnrollmentPolicyView } from '../../api-contract/enrollment-policies-contract.ts';
import { versionOf } from '../configuration/change.ts';
import { policyRefusal } from '../domain/enrollment.ts';
import type { RowOf } from '../store/repositories/records.ts';
import type { Transaction } from '../store/transaction.ts';
import { policyFacts } from './policy-facts.ts';

export async function policyView(
  tx: Transaction,
  row: RowOf<'enrollmentPolicy'>,
): Promise<EnrollmentPolicyView> {
  const { siteId, verifiedIssuer, verifiedSubject } = row;
  const isBlocked = await tx.keys.subjectIsBlocked(siteId, verifiedIssuer, verifiedSubject);
  const refusal = policyRefusal(await policyFacts(tx, row)) ?? (isBlocked ? 'subject_blocked' : undefined);
  return {
    policy_id: row.id,
    site_id: row.siteId,
    reference: row.reference,
    display_name: row.displayName,
    source_id: row.sourceId,
    source_revision: row.sourceRevision,
    client_id: row.clientId,
    approval: row.approval,
    max_key_lifetime_seconds: row.maxKeyLifetimeSeconds,
    verified_issuer: row.verifiedIssuer,
    verified_subject: row.verifiedSubject,
    max_keys_per_token: row.maxKeysPerToken,
    state: row.state,
    ...(refusal === undefined ? {} : { refuses_with: refusal }),
    ...versionOf(row),
  };
}
