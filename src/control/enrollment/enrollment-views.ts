/** API views of enrollments for operators. */

import type { EnrollmentView } from '../../api-contract/enrollments-contract.ts';
import { momentOf, versionOf } from '../configuration/change.ts';
import type { RowOf } from '../store/repositories/records.ts';

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
export function parseProvenance(text: string): { [name: string]: string } {
  const stored: unknown = JSON.parse(text);
  if (typeof stored !== 'object' || stored === null) return {};
  return Object.fromEntries(
    Object.entries(stored).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  );
}
