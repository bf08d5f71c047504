/**
 * Moves source revisions from publishing to active once every attached target has the bundle that lists them. A target that
 * has never loaded a bundle denies everything, and starts with the newest one: nothing waits for it. The same transaction
 * supersedes the previously active revision, and binds the policies that wait.
 * Source: specification "States and transitions"; docs/operate/control.md "Trust Anchor Source".
 */

import { move } from '../domain/machine.ts';
import { SOURCE_MACHINE, type SourceEvent } from '../domain/source-states.ts';
import { bindWaitingPolicies } from '../keys/waiting-policies.ts';
import { audited, BY_CONTROL, placeInSite } from '../resource/change.ts';
import type { AuditEntry, ControlStore } from '../store/port.ts';
import type { RowOf } from '../store/repositories/records.ts';
import type { Transaction } from '../store/transaction.ts';

/**
 * Call it when the attached targets, or what they acknowledged, may have changed. Without anything to settle it takes no
 * lock. @returns how many revisions moved
 */
export async function settleSources(store: ControlStore, siteId: string, nowMs: number): Promise<number> {
  const isNeeded = await store.read(async (tx) => {
    if ((await acknowledgedRevisions(tx, siteId, nowMs)).length > 0) return true;
    const { attached, revision } = await tx.propagation.heldByAll(siteId, nowMs);
    return attached > 0 && (await tx.propagation.hasKeysUnderWay(siteId, revision));
  });
  if (!isNeeded) return 0;
  return store.writeUnaudited({ kind: 'site', siteId }, async (tx) => {
    const audit = await targetDetached(tx, siteId, nowMs);
    for (const entry of audit) await tx.audit.append(entry, nowMs);
    return audit.length;
  });
}

/**
 * Settles inside a mutation that holds the site's lock: a target was detached, so its acknowledgement is not awaited any more.
 * @returns entries for the mutation's audit trail
 */
async function targetDetached(
  tx: Transaction,
  siteId: string,
  nowMs: number,
): Promise<readonly AuditEntry[]> {
  await noteHeldByAll(tx, siteId, nowMs);
  return settleAcknowledged(tx, siteId, nowMs);
}

/** Records keys and revocations that every attached target has. */
export async function noteHeldByAll(tx: Transaction, siteId: string, nowMs: number): Promise<void> {
  const { attached, revision } = await tx.propagation.heldByAll(siteId, nowMs);
  if (attached > 0 && revision > 0) await tx.propagation.noteEverywhere(siteId, revision, nowMs);
}

async function acknowledgedRevisions(
  tx: Transaction,
  siteId: string,
  nowMs: number,
): Promise<readonly RowOf<'sourceRevision'>[]> {
  const publishing = await tx.sources.inStates(siteId, ['publishing']);
  if (publishing.length === 0) return [];
  const held = await tx.propagation.heldByAll(siteId, nowMs);
  return publishing.filter(
    ({ awaitedRevision }) =>
      awaitedRevision !== null && (held.least === undefined || held.least >= awaitedRevision),
  );
}

async function settleAcknowledged(
  tx: Transaction,
  siteId: string,
  nowMs: number,
): Promise<readonly AuditEntry[]> {
  const audit: AuditEntry[] = [];
  for (const row of await acknowledgedRevisions(tx, siteId, nowMs)) {
    for (const other of await tx.sources.revisions(row.sourceId)) {
      if (other.state !== 'active' && other.state !== 'suspended') continue;
      audit.push(await moveRevision(tx, other, 'superseded', nowMs));
    }
    audit.push(await moveRevision(tx, row, 'acknowledged', nowMs));
    const place = await placeInSite(tx, siteId);
    audit.push(...(await bindWaitingPolicies(tx, row, place, nowMs)));
  }
  return audit;
}

async function moveRevision(
  tx: Transaction,
  row: RowOf<'sourceRevision'>,
  event: Extract<SourceEvent, 'acknowledged' | 'superseded'>,
  nowMs: number,
): Promise<AuditEntry> {
  const moved = move(SOURCE_MACHINE, row.state, event);
  if (moved.kind === 'refused') throw new Error(`source ${row.sourceId} is ${row.state}: not ${event}`);
  await tx.sourceRevisions.change(row, { state: moved.to, stateSinceMs: nowMs }, nowMs);
  return audited(BY_CONTROL, {
    what: event === 'acknowledged' ? 'source_revision.acknowledge' : 'source_revision.supersede',
    id: `${row.sourceId}/${row.revision}`,
    place: await placeInSite(tx, row.siteId),
    before: { revision: row.revision, state: row.state },
    after: { revision: row.revision, state: moved.to },
  });
}
