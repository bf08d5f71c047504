/** API views of enrollments for operators. */

import type {
  BlockedSubjectView,
  DerivedKeyView,
  EnrollmentView,
} from '../contract/derived-keys-contract.ts';
import type { EnrollmentPolicyView } from '../contract/sources-contract.ts';
import { keyStateAt, policyProblem } from '../domain/enrollment-rules.ts';
import { momentOf, versionOf } from '../resource/change.ts';
import type { RowOf } from '../store/repositories/records.ts';
import type { Transaction } from '../store/transaction.ts';
import { policyFacts } from './policy-facts.ts';

export function enrollmentView(row: RowOf<'enrollment'>): EnrollmentView {
  return {
    enrollment_id: row.id,
    site_id: row.siteId,
    policy_id: row.policyId,
    client_id: row.clientId,
    source_id: row.sourceId,
    source_revision: row.sourceRevision,
    state: row.state,
    fingerprint: row.thumbprint,
    verified_issuer: row.verifiedIssuer,
    verified_subject: row.verifiedSubject,
    provenance: parseProvenance(row.provenance),
    key_expires_at: momentOf(row.keyExpiresAtSeconds * 1000),
    ...(row.denialCode === null ? {} : { denial_code: row.denialCode }),
    ...(row.decidedBy === null ? {} : { decided_by: row.decidedBy }),
    ...(row.decidedAtMs === null ? {} : { decided_at: momentOf(row.decidedAtMs) }),
    ...(row.keyId === null ? {} : { key_id: row.keyId }),
    ...versionOf(row),
  };
}

/** Parses provenance. Only enrollment writes it, as an object of strings. */
function parseProvenance(text: string): { [name: string]: string } {
  const stored: unknown = JSON.parse(text);
  if (typeof stored !== 'object' || stored === null) return {};
  return Object.fromEntries(
    Object.entries(stored).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  );
}

/**
 * API views of derived keys for operators.
 * @param lastUsedSeconds as targets reported it; undefined when none did, or where it does not matter
 */
export function derivedKeyView(
  row: RowOf<'derivedKey'>,
  nowMs: number,
  lastUsedSeconds?: number,
): DerivedKeyView {
  return {
    key_id: row.keyId,
    site_id: row.siteId,
    client_id: row.clientId,
    policy_id: row.policyId,
    enrollment_id: row.enrollmentId,
    source_id: row.sourceId,
    source_revision: row.sourceRevision,
    fingerprint: row.thumbprint,
    status: keyStateAt(row.status, row.expiresAtSeconds, Math.floor(nowMs / 1000)),
    expires_at: momentOf(row.expiresAtSeconds * 1000),
    verified_issuer: row.verifiedIssuer,
    verified_subject: row.verifiedSubject,
    provenance: parseProvenance(row.provenance),
    ...(row.revokedAtMs === null ? {} : { revoked_at: momentOf(row.revokedAtMs) }),
    ...(row.revokedBy === null ? {} : { revoked_by: row.revokedBy }),
    ...(row.revokedReason === null ? {} : { revoked_reason: row.revokedReason }),
    ...(row.listedRevision === null ? {} : { listed_in_revision: row.listedRevision }),
    ...(row.revokedRevision === null ? {} : { revoked_in_revision: row.revokedRevision }),
    ...(lastUsedSeconds === undefined ? {} : { last_used_at: momentOf(lastUsedSeconds * 1000) }),
    ...versionOf(row),
  };
}

export function blockedSubjectView(row: RowOf<'blockedSubject'>): BlockedSubjectView {
  const { siteId, issuer, subject, blockedAtMs, blockedBy } = row;
  return { site_id: siteId, issuer, subject, blocked_at: momentOf(blockedAtMs), blocked_by: blockedBy };
}

/** API views of enrollment policies for operators. */
export async function policyView(
  tx: Transaction,
  row: RowOf<'enrollmentPolicy'>,
): Promise<EnrollmentPolicyView> {
  const { siteId, verifiedIssuer, verifiedSubject } = row;
  const isBlocked = await tx.keys.subjectIsBlocked(siteId, verifiedIssuer, verifiedSubject);
  const problem = policyProblem(await policyFacts(tx, row)) ?? (isBlocked ? 'subject_blocked' : undefined);
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
    ...(problem === undefined ? {} : { refuses_with: problem }),
    ...versionOf(row),
  };
}
