/** API views of derived keys for operators. */

import type { BlockedSubjectView, DerivedKeyView } from '../../api-contract/derived-keys-contract.ts';
import { momentOf, versionOf } from '../configuration/change.ts';
import { keyStateAt } from '../domain/enrollment.ts';
import type { RowOf } from '../store/repositories/records.ts';
import { parseProvenance } from './enrollment-views.ts';

export function derivedKeyView(row: RowOf<'derivedKey'>, nowMs: number): DerivedKeyView {
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
    ...versionOf(row),
  };
}

export function blockedSubjectView(row: RowOf<'blockedSubject'>): BlockedSubjectView {
  const { siteId, issuer, subject, blockedAtMs, blockedBy } = row;
  return { site_id: siteId, issuer, subject, blocked_at: momentOf(blockedAtMs), blocked_by: blockedBy };
}
