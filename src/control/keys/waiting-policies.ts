/**
 * Policies that wait for a source revision. When it becomes active, policies in state `waiting` become active, and those that
 * a declaration moves to it are bound to it. A policy of another issuer stays as it is: the draft was edited after the policy
 * was to wait for it. Source: docs/operate/control-api.md "Declarations".
 */
import { POLICY_MACHINE } from '../domain/enrollment-rules.ts';
import { move } from '../domain/machine.ts';
import type { ScopePath } from '../domain/roles.ts';
import { audited, BY_CONTROL } from '../resource/change.ts';
import type { AuditEntry } from '../store/port.ts';
import type { RowOf } from '../store/repositories/records.ts';
import type { Transaction } from '../store/transaction.ts';
import { policyView } from './enrollment-views.ts';

/** Call it in the transaction that makes the revision active. @returns one audit row for each policy */
export async function bindWaitingPolicies(
  tx: Transaction,
  { sourceId, revision, issuer }: Pick<RowOf<'sourceRevision'>, 'sourceId' | 'revision' | 'issuer'>,
  place: ScopePath,
  nowMs: number,
): Promise<readonly AuditEntry[]> {
  const entries: AuditEntry[] = [];
  for (const row of await tx.policies.waitingFor(sourceId, revision)) {
    if (row.verifiedIssuer !== issuer) continue;
    const before = await policyView(tx, row);
    const moved = move(POLICY_MACHINE, row.state, 'source_active');
    const state = moved.kind === 'moved' ? moved.to : row.state;
    const set = { state, sourceRevision: revision, nextSourceRevision: null };
    const after = await policyView(tx, await tx.policies.change(row, set, nowMs));
    const what = 'enrollment_policy.change';
    entries.push(audited(BY_CONTROL, { what, id: row.id, place, before, after }));
  }
  return entries;
}
