/** Makes the derived key of an accepted enrollment, in the transaction that accepts it. */
import { newId } from '../domain/identifiers.ts';
import type { AuditEntry } from '../store/port.ts';
import type { RowOf } from '../store/repositories/records.ts';
import type { Decider, PlacedTransaction } from './denials.ts';
import { derivedKeyView } from './key-views.ts';

/** What a key takes over from its enrollment. */
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
  { actor, requestId }: Decider,
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
    version: 1,
    createdAtMs: nowMs,
    updatedAtMs: nowMs,
  };
  await tx.keys.add(row);
  await tx.changes.record(siteId, { kind: 'key', keyId: row.keyId }, nowMs);
  tx.notify({ topic: 'site_changed', reference: siteId });
  const audit: AuditEntry = {
    kind: 'proofgate.control.derived_key.issue',
    actor,
    resource: { kind: 'derived_key', id: row.keyId },
    place,
    after: derivedKeyView(row, nowMs),
    requestId,
  };
  return { keyId: row.keyId, audit };
}
