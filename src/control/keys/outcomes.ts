/**
 * Outcomes of enrollments: an issued key, a denial, or an expiry. Denials are written at once, so that waiting workloads learn
 * of them. Source: docs/design/enrollment.md "Enrollment".
 */

import type { EnrollmentState } from '../contract/vocabulary.ts';
import { ApiProblem, type ProblemCode } from '../domain/api-problem.ts';
import { ENROLLMENT_MACHINE, type EnrollmentEvent } from '../domain/enrollment-rules.ts';
import { move } from '../domain/machine.ts';
import { newId } from '../domain/resource-identifiers.ts';
import type { ScopePath } from '../domain/roles.ts';
import { audited, type By, newVersion, publishChange } from '../resource/change.ts';
import type { AuditEntry } from '../store/port.ts';
import type { RowOf } from '../store/repositories/records.ts';
import type { Transaction } from '../store/transaction.ts';
import { derivedKeyView, enrollmentView } from './enrollment-views.ts';

export interface PlacedTransaction {
  readonly tx: Transaction;
  readonly place: ScopePath;
}

/** Denial codes of operators and Control. They are stable; workloads see them. */
type DenialCode = ProblemCode | 'denied_by_operator' | 'policy_rebound';

/** @throws ApiProblem `enrollment_state_conflict` */
export function enrollmentStateAfter(state: EnrollmentState, event: EnrollmentEvent): EnrollmentState {
  const moved = move(ENROLLMENT_MACHINE, state, event);
  if (moved.kind === 'moved') return moved.to;
  throw new ApiProblem('enrollment_state_conflict', `the enrollment is ${state}`);
}

/** @returns one audit row for each enrollment */
export async function denyWaiting(
  placed: PlacedTransaction,
  waiting: readonly RowOf<'enrollment'>[],
  code: DenialCode,
  by: By,
  nowMs: number,
): Promise<readonly AuditEntry[]> {
  const entries: AuditEntry[] = [];
  for (const row of waiting) {
    const state = enrollmentStateAfter(row.state, 'policy_ended');
    const { audit } = await decide(placed, row, { verb: 'deny', state, denialCode: code }, by, nowMs);
    entries.push(audit);
  }
  return entries;
}

interface Outcome {
  readonly verb: 'approve' | 'deny' | 'expire';
  readonly state: EnrollmentState;
  readonly denialCode?: DenialCode;
  readonly keyId?: string;
  /** For the audit row only. */
  readonly reason?: string | undefined;
}

/** A decided enrollment with its audit row. */
export interface Decided {
  readonly row: RowOf<'enrollment'>;
  readonly audit: AuditEntry;
}

/** Records the outcome and notifies waiting polls. */
export async function decide(
  { tx, place }: PlacedTransaction,
  row: RowOf<'enrollment'>,
  { verb, state, denialCode, keyId, reason }: Outcome,
  by: By,
  nowMs: number,
): Promise<Decided> {
  const set = {
    state,
    denialCode: denialCode ?? null,
    keyId: keyId ?? null,
    decidedBy: by.actor,
    decidedAtMs: nowMs,
  };
  const decided = await tx.enrollments.change(row, set, nowMs);
  tx.notify({ topic: 'enrollment_decided', reference: row.id });
  const audit = audited(by, {
    what: `enrollment.${verb}`,
    id: row.id,
    place,
    before: enrollmentView(row),
    after: { ...enrollmentView(decided), ...(reason === undefined ? {} : { reason }) },
  });
  return { row: decided, audit };
}

interface IssuedKey {
  readonly keyId: string;
  readonly audit: AuditEntry;
}

/** Issues the derived key of an accepted enrollment, in the transaction that accepts it. */
export async function issueKey(
  { tx, place }: PlacedTransaction,
  accepted: RowOf<'enrollment'>,
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
