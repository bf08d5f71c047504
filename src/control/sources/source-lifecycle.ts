/**
 * Suspends, resumes and retires sources. Enrollments stop; the source's policy keeps or revokes living keys.
 * Source: specification "States and transitions"; docs/control.md "Trust Anchor Source".
 */
import type { SourceRevisionView } from '../../api-contract/sources-contract.ts';
import { ApiProblem } from '../domain/api-problem.ts';
import { denyWaiting } from '../enrollment/denials.ts';
import { revokeKeysOfSource } from '../enrollment/keys.ts';
import type { Operation } from '../resource/operation.ts';
import type { ControlStore } from '../store/port.ts';
import type { RowOf } from '../store/repositories/records.ts';
import {
  changeRevision,
  mutateRevision,
  noteForPublishing,
  type RevisionInHand,
  type RevisionName,
  revisionAudit,
  stateAfter,
} from './source-changes.ts';
import { revisionView } from './source-views.ts';

export class SourceLifecycle {
  readonly #store: ControlStore;
  readonly #nowMs: () => number;

  constructor(store: ControlStore, nowMs: () => number) {
    this.#store = store;
    this.#nowMs = nowMs;
  }

  /** Keeps the slot. Pending enrollments stay pending. @throws ApiProblem `source_state_conflict` */
  suspend(name: RevisionName, operation: Operation): Promise<SourceRevisionView> {
    return mutateRevision(this.#store, name, async (hand) => {
      const state = stateAfter(hand.row.state, 'suspend');
      const revokedKeys = hand.source.onSuspend === 'revoke' ? await this.#revokeKeys(hand, operation) : 0;
      const after = await changeRevision(hand, { state }, this.#nowMs());
      const entry = revisionAudit('suspend', operation, hand, after, { revoked_keys: revokedKeys });
      return { result: revisionView(after), audit: [entry] };
    });
  }

  /** @throws ApiProblem `source_state_conflict`, `source_revision_in_progress` */
  resume(name: RevisionName, operation: Operation): Promise<SourceRevisionView> {
    return mutateRevision(this.#store, name, async (hand) => {
      const state = stateAfter(hand.row.state, 'resume');
      const others = await otherRevisions(hand);
      if (others.some((other) => other.state === 'activating' || other.state === 'publishing')) {
        throw new ApiProblem('source_revision_in_progress');
      }
      const nowMs = this.#nowMs();
      await noteForPublishing(hand, nowMs);
      const after = await changeRevision(hand, { state, awaitedRevision: null }, nowMs);
      return { result: revisionView(after), audit: [revisionAudit('resume', operation, hand, after)] };
    });
  }

  /**
   * Final. Denies pending enrollments of this revision. `on_retire` does not apply to a revision that was about to replace
   * another one, because its source stays in use.
   * @throws ApiProblem `source_state_conflict`
   */
  retire(name: RevisionName, operation: Operation): Promise<SourceRevisionView> {
    return mutateRevision(this.#store, name, async (hand) => {
      const { tx, row, source, place } = hand;
      const nowMs = this.#nowMs();
      const state = stateAfter(row.state, 'retire');
      const goesOn = (await otherRevisions(hand)).some(
        (other) => other.state === 'active' || other.state === 'suspended',
      );
      const endsKeys = source.onRetire === 'revoke' && !goesOn;
      const revokedKeys = endsKeys ? await this.#revokeKeys(hand, operation) : 0;
      const waiting = await tx.enrollments.pendingOfRevision(row.sourceId, row.revision);
      const denials = await denyWaiting({ tx, place }, waiting, 'source_not_active', operation, nowMs);
      if (row.state !== 'activating') await noteForPublishing(hand, nowMs);
      const after = await changeRevision(hand, { state, awaitedRevision: null }, nowMs);
      const entry = revisionAudit('retire', operation, hand, after, { revoked_keys: revokedKeys });
      return { result: revisionView(after), audit: [entry, ...denials] };
    });
  }

  #revokeKeys({ tx, row, source }: RevisionInHand, { actor }: Operation): Promise<number> {
    const reason = `source ${row.sourceId}`;
    return revokeKeysOfSource(tx, source, { by: actor, reason, nowMs: this.#nowMs() });
  }
}

async function otherRevisions({ tx, row }: RevisionInHand): Promise<readonly RowOf<'sourceRevision'>[]> {
  const revisions = await tx.sources.revisions(row.sourceId);
  return revisions.filter(({ revision }) => revision !== row.revision);
}
