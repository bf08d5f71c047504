/** Targets of a site and their tokens. Control shows a token once and stores its hash. */
import {
  DEFAULT_OVERLAP_SECONDS,
  type TargetView,
  type TokenRotation,
} from '../contract/targets-contract.ts';
import { ApiProblem } from '../domain/api-problem.ts';
import { move } from '../domain/machine.ts';
import { newId } from '../domain/resource-identifiers.ts';
import { TARGET_MACHINE } from '../domain/runtime-states.ts';
import { enforcedView } from '../publishing/known-members.ts';
import { newVersion, placeInSite, requireRow, versionOf } from '../resource/change.ts';
import type { Created, Operation } from '../resource/operation.ts';
import { type ResourceDeps, siteLock, VersionedResource } from '../resource/versioned-resource.ts';
import { newToken, tokenHash } from '../secrets/bearer-token.ts';
import type { Page, RowOf } from '../store/repositories/records.ts';
import type { Transaction } from '../store/transaction.ts';

export interface ShownToken {
  readonly token: string;
}

const NO_PREVIOUS_TOKEN = { previousTokenHash: null, previousTokenEndsAtMs: null };

export class Targets extends VersionedResource<'target', 'target', TargetView> {
  constructor(deps: ResourceDeps) {
    super(deps, {
      audited: 'target',
      table: (tx) => tx.targets,
      lock: async ([id], store) =>
        siteLock([requireRow(await store.read((tx) => tx.targets.find(id))).siteId]),
      place: (tx, { siteId }) => placeInSite(tx, siteId),
      id: ({ id }) => id,
      views: (_tx, rows) => rows.map(targetView),
    });
  }

  list(siteId: string, page: Page, name?: string): Promise<readonly TargetView[]> {
    return this.listRows((tx) => tx.targets.list({ siteId, name }, page));
  }

  create(operation: Operation, siteId: string, name: string): Promise<Created<TargetView, ShownToken>> {
    return this.createRow<ShownToken>(operation, siteLock([siteId]), async (tx, nowMs) => {
      const token = newToken('target');
      const row = newRow(siteId, name, token, nowMs);
      await tx.targets.add(row);
      // A source revision in state `publishing` now waits for this target too.
      countTargetsAgain(tx, siteId);
      return { name: [row.id], shownOnce: { token } };
    });
  }

  /** @throws ApiProblem `not_found`, `precondition_failed` */
  rename(operation: Operation, id: string, version: number, name: string): Promise<TargetView> {
    return this.changeRow(operation, [id], version, (tx, { siteId }) => {
      countTargetsAgain(tx, siteId);
      return { set: { name } };
    });
  }

  /**
   * The previous token stays valid for an overlap, so that the target can switch. An even older one ends now.
   * @throws ApiProblem `not_found`, `target_state_conflict`
   */
  async rotateToken(
    operation: Operation,
    id: string,
    rotation: TokenRotation,
  ): Promise<TargetView & ShownToken> {
    const token = newToken('target');
    const overlapMs = (rotation.overlap_seconds ?? DEFAULT_OVERLAP_SECONDS) * 1000;
    const rotate = (tx: Transaction, row: RowOf<'target'>, nowMs: number) => {
      if (row.state !== 'attached') throw new ApiProblem('target_state_conflict');
      countTargetsAgain(tx, row.siteId);
      const previous =
        overlapMs === 0
          ? NO_PREVIOUS_TOKEN
          : { previousTokenHash: row.tokenHash, previousTokenEndsAtMs: nowMs + overlapMs };
      return { set: { tokenHash: tokenHash(token), ...previous } };
    };
    return { ...(await this.changeRow(operation, [id], undefined, rotate, 'rotate_token')), token };
  }

  /** @throws ApiProblem `not_found`, `target_state_conflict` */
  detach(operation: Operation, id: string): Promise<TargetView> {
    const detach = async (tx: Transaction, row: RowOf<'target'>) => {
      const moved = move(TARGET_MACHINE, row.state, 'detach');
      if (moved.kind === 'refused') throw new ApiProblem('target_state_conflict');
      countTargetsAgain(tx, row.siteId);
      await tx.targetInstances.removeAll(row.id);
      return { set: { state: moved.to, ...NO_PREVIOUS_TOKEN } };
    };
    return this.changeRow(operation, [id], undefined, detach, 'detach');
  }
}

/** Makes the publisher read again which attached targets it waits for. */
function countTargetsAgain(tx: Transaction, siteId: string): void {
  tx.notify({ topic: 'site_changed', reference: siteId });
}

function newRow(siteId: string, name: string, token: string, nowMs: number) {
  return {
    id: newId('target', nowMs),
    siteId,
    name,
    state: 'attached' as const,
    tokenHash: tokenHash(token),
    previousTokenHash: null,
    previousTokenEndsAtMs: null,
    ackedRevision: null,
    ackedHead: null,
    ackedAtMs: null,
    refusedRevision: null,
    refusedCode: null,
    refusedDetail: null,
    refusedAtMs: null,
    lastSeenAtMs: null,
    aheadRevision: null,
    unsignedRevision: null,
    unsignedHead: null,
    unsignedUntilMs: null,
    unlistedRevision: null,
    unlistedUntilMs: null,
    nextUnlistedRevision: null,
    nextUnlistedUntilMs: null,
    freshUntilMs: null,
    aheadSinceMs: null,
    acceptedProofsLackedAtMs: null,
    blockedLackedAtMs: null,
    enforcementLackedAtMs: null,
    passportHeaderLackedAtMs: null,
    enforcedObservations: null,
    ...newVersion(nowMs),
  };
}

function targetView(row: RowOf<'target'>): TargetView {
  const { id, siteId, name, state, aheadRevision } = row;
  const ahead = aheadRevision === null || state !== 'attached' ? {} : { ahead_revision: aheadRevision };
  return { target_id: id, site_id: siteId, name, state, ...ahead, ...enforcedView(row), ...versionOf(row) };
}
