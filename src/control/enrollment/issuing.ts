/** Makes the derived key of an accepted enrollment, in the transaction that accepts it. */

import { newId } from '../domain/resource-identifiers.ts';
import { audited, type By, newVersion, publishChange } from '../resource/change.ts';
import type { AuditEntry } from '../store/port.ts';
import type { RowOf } from '../store/repositories/records.ts';
import type { PlacedTransaction } from './denials.ts';
import { derivedKeyView } from './enrollment-views.ts';

/** Columns that a key takes from its enrollment. */
type Accepted = Pick<
  RowOf<'enrollment'>,
  | 'id'
  | 'siteId'
  | 'clientId'
  | 'policyId'
  | 'sourceId'
  | 'sourceRevision'
  | 'publicJwk'
  | 'thumbprint'
  | 'keyExpiresAtSeconds'
  | 'verifiedIssuer'
  | 'verifiedSubject'
  | 'provenance'
>;

export interface IssuedKey {
  readonly keyId: string;
  readonly audit: AuditEntry;
}

export async function issueKey(
  { tx, place }: PlacedTransaction,
  accepted: Accepted,
  by: By,
  nowMs: number,
): Promise<IssuedKey> {
  const { id: enrollmentId, siteId, keyExpiresAtSeconds, ...facts } = accepted;
  const row: RowOf<'derivedKey'> = {
    keyId: newId('derivedKey', nowMs),
    siteId,
    enrollmentId,
    clientId: facts.clientId,
    policyId: facts.policyId,
    sourceId: facts.sourceId,
    sourceRevision: facts.sourceRevision,
    publicJwk: facts.publicJwk,
    thumbprint: facts.thumbprint,
    verifiedIssuer: facts.verifiedIssuer,
    verifiedSubject: facts.verifiedSubject,
    provenance: facts.provenance,
    status: 'active',
    expiresAtSeconds: keyExpiresAtSeconds,
    revokedAtMs: null,
    revokedBy: null,
    revokedReason: null,
    listedRevision: null,
    listedEverywhereAtMs: null,
    revokedRevision: null,
    revokedEverywhereAtMs: null,
    ...newVersion(nowMs),
  };
  await tx.keys.add(row);
  await publishChange(tx, siteId, { kind: 'key', keyId: row.keyId }, nowMs);
  const after = derivedKeyView(row, nowMs);
  const audit = audited(by, { what: 'derived_key.issue', id: row.keyId, place, after });
  return { keyId: row.keyId, audit };
}
