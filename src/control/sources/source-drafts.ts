/**
 * Creates, edits and deletes sources and their drafts. Editing an active source adds a new revision beside the active one.
 * Source: specification "Trust Anchor Source"; docs/operate/control.md "Trust Anchor Source".
 */

import type {
  SourceChange,
  SourceCreation,
  SourceKeysView,
  SourceRevisionChange,
  SourceRevisionView,
  SourceView,
} from '../contract/sources-contract.ts';
import { ApiProblem } from '../domain/api-problem.ts';
import { newId } from '../domain/resource-identifiers.ts';
import { isDraft } from '../domain/source-states.ts';
import { newVersion, placeInSite, requireRow, requireVersion } from '../resource/change.ts';
import { type Created, createOnce, type Operation } from '../resource/operation.ts';
import { oneByOne, type ResourceDeps, siteLock, VersionedResource } from '../resource/versioned-resource.ts';
import type { Page, RowOf } from '../store/repositories/records.ts';
import type { Transaction } from '../store/transaction.ts';
import {
  changeRevision,
  isEnded,
  mutateRevision,
  NOT_VALIDATED,
  type RevisionName,
  revisionAudit,
  stateAfter,
} from './source-changes.ts';
import { revisionView, revisionViewNow, sourceKeysView, sourceView } from './source-views.ts';

export class SourceDrafts extends VersionedResource<'source', 'source', SourceView> {
  constructor(deps: ResourceDeps) {
    super(deps, {
      audited: 'source',
      table: (tx) => tx.sources,
      lock: async ([id], store) =>
        siteLock([requireRow(await store.read((tx) => tx.sources.find(id))).siteId]),
      place: (tx, { siteId }) => placeInSite(tx, siteId),
      id: ({ id }) => id,
      views: oneByOne(sourceView),
    });
  }

  /** The revision with the targets that it waits for. @throws ApiProblem `not_found` */
  revision({ sourceId, revision }: RevisionName): Promise<SourceRevisionView> {
    return this.store.read(async (tx) =>
      revisionViewNow(tx, requireRow(await tx.sourceRevisions.find(sourceId, revision))),
    );
  }

  ofSite(siteId: string, page: Page, name?: string): Promise<readonly SourceView[]> {
    return this.listRows((tx) => tx.sources.list({ siteId, displayName: name }, page));
  }

  /** The issuer's keys that Control holds for its revisions. @throws ApiProblem `not_found` */
  keys(sourceId: string): Promise<SourceKeysView> {
    return this.store.read(async (tx) => {
      const { id } = requireRow(await tx.sources.find(sourceId));
      return sourceKeysView(tx, id, this.nowMs());
    });
  }

  /** Creates a source with its first draft. Takes no slot. @throws ApiProblem `audience_taken` */
  create(
    siteId: string,
    creation: SourceCreation,
    operation: Operation,
  ): Promise<Created<SourceView, never>> {
    return this.createRow(operation, siteLock([siteId]), async (tx, nowMs) => {
      await rejectTakenAudience(tx, siteId, creation.audience);
      const source = {
        id: newId('source', nowMs),
        siteId,
        kind: creation.kind,
        displayName: creation.display_name,
        onSuspend: creation.on_suspend ?? 'keep',
        onRetire: creation.on_retire ?? 'keep',
        ...newVersion(nowMs),
      };
      await tx.sources.add(source);
      await tx.sourceRevisions.add(
        draft(source, 1, { ...creation, discovery: creation.discovery ?? 'checked' }, nowMs),
      );
      return { name: [source.id] };
    });
  }

  /** Changes members that do not depend on the state of revisions. @throws ApiProblem `precondition_failed` */
  change(
    sourceId: string,
    change: SourceChange,
    expectedVersion: number,
    operation: Operation,
  ): Promise<SourceView> {
    return this.changeRow(operation, [sourceId], expectedVersion, (_tx, source) => ({
      set: {
        displayName: change.display_name ?? source.displayName,
        onSuspend: change.on_suspend ?? source.onSuspend,
        onRetire: change.on_retire ?? source.onRetire,
      },
    }));
  }

  /** @throws ApiProblem `source_state_conflict` unless all its revisions are drafts */
  deleteSource(sourceId: string, expectedVersion: number, operation: Operation): Promise<void> {
    return this.removeRow(operation, [sourceId], expectedVersion, async (tx) => {
      for (const row of await tx.sources.revisions(sourceId)) {
        stateAfter(row.state, 'delete');
        await removeRevision(tx, row);
      }
      // Removes deleted policies that waited for the source.
      await tx.policies.pruneDeleted(sourceId);
      return {};
    });
  }

  /**
   * Adds a draft. Coordinates that are not given come from the newest revision. A source has one draft at a time.
   * @throws ApiProblem `source_revision_in_progress`, `source_state_conflict` (the source is retired), `audience_taken`
   */
  async addRevision(
    sourceId: string,
    coordinates: SourceRevisionChange,
    operation: Operation,
  ): Promise<Created<SourceRevisionView, never>> {
    const { siteId } = await this.store.read(async (tx) => requireRow(await tx.sources.find(sourceId)));
    const nowMs = this.nowMs();
    return createOnce(this.store, siteLock([siteId]), operation, nowMs, async (tx) => {
      const source = requireRow(await tx.sources.find(sourceId));
      const revisions = await tx.sources.revisions(sourceId);
      const newest = revisions.at(-1);
      if (newest === undefined || isEnded(revisions)) {
        throw new ApiProblem('source_state_conflict', 'the source is retired; make another');
      }
      if (revisions.some(({ state }) => isDraft(state))) {
        throw new ApiProblem(
          'source_revision_in_progress',
          'edit or delete the draft that the source has already',
        );
      }
      const wanted = merged(newest, coordinates);
      await rejectTakenAudience(tx, siteId, wanted.audience);
      const row = draft(source, newest.revision + 1, wanted, nowMs);
      await tx.sourceRevisions.add(row);
      const place = await placeInSite(tx, siteId);
      const entry = { ...revisionAudit('create', operation, { row, place }, row), before: undefined };
      return { result: revisionView(row), audit: [entry] };
    });
  }

  /** Makes it a draft again and discards validation results. @throws ApiProblem `source_state_conflict`, `audience_taken` */
  editRevision(
    name: RevisionName,
    coordinates: SourceRevisionChange,
    expectedVersion: number,
    operation: Operation,
  ): Promise<SourceRevisionView> {
    return changeRevision({ store: this.store, nowMs: this.nowMs }, name, operation, async ({ tx, row }) => {
      requireVersion(row, expectedVersion);
      const state = stateAfter(row.state, 'edit');
      const { issuer, jwks_uri: jwksUri, audience, discovery } = merged(row, coordinates);
      await rejectTakenAudience(tx, row.siteId, audience);
      // Keys fetched for the old coordinates must not serve the new ones.
      await tx.sources.removeKeySet(name.sourceId, name.revision);
      return { verb: 'change', set: { state, issuer, jwksUri, audience, discovery, ...NOT_VALIDATED } };
    });
  }

  /** @throws ApiProblem `source_state_conflict` unless it is a draft, and for the only revision of a source */
  deleteRevision(name: RevisionName, expectedVersion: number, operation: Operation): Promise<void> {
    return mutateRevision(this.store, name, async (context) => {
      const { tx, row } = context;
      requireVersion(row, expectedVersion);
      stateAfter(row.state, 'delete');
      if ((await tx.sources.revisions(name.sourceId)).length === 1) {
        throw new ApiProblem('source_state_conflict', 'it is the only revision: delete the source');
      }
      await removeRevision(tx, name);
      await tx.policies.forgetNext(name.sourceId, name.revision);
      return { result: undefined, audit: [revisionAudit('delete', operation, context, undefined)] };
    });
  }
}

type Coordinates = Required<SourceRevisionChange>;

function draft(
  { id, siteId }: Pick<RowOf<'source'>, 'id' | 'siteId'>,
  revision: number,
  { issuer, jwks_uri: jwksUri, audience, discovery }: Coordinates,
  nowMs: number,
): RowOf<'sourceRevision'> {
  return {
    sourceId: id,
    revision,
    siteId,
    state: 'draft',
    issuer,
    jwksUri,
    audience,
    discovery,
    ...NOT_VALIDATED,
    awaitedRevision: null,
    stateSinceMs: nowMs,
    ...newVersion(nowMs),
  };
}

function merged(row: RowOf<'sourceRevision'>, change: SourceRevisionChange): Coordinates {
  return {
    issuer: change.issuer ?? row.issuer,
    jwks_uri: change.jwks_uri ?? row.jwksUri,
    audience: change.audience ?? row.audience,
    discovery: change.discovery ?? row.discovery,
  };
}

/**
 * Only an early warning: a draft claims nothing, so that it cannot block an audience for others. Activation claims it.
 * @throws ApiProblem `audience_taken`
 */
async function rejectTakenAudience(tx: Transaction, siteId: string, audience: string): Promise<void> {
  const owner = await tx.sources.ownerOfAudience(audience);
  if (owner !== undefined && owner !== siteId) throw new ApiProblem('audience_taken');
}

async function removeRevision(tx: Transaction, { sourceId, revision }: RevisionName): Promise<void> {
  await tx.sources.removeKeySet(sourceId, revision);
  await tx.sourceRevisions.remove(sourceId, revision);
}
