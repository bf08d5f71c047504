/** Targets of a site, and their tokens: shown once, kept as hashes. */
import { DEFAULT_OVERLAP_SECONDS, type TargetView, type TokenRotation } from '../api/contract/targets.ts';
import type { AuditVerb } from '../domain/audit-kinds.ts';
import { newId } from '../domain/identifiers.ts';
import { move } from '../domain/machine.ts';
import { Refusal } from '../domain/refusal.ts';
import type { Place } from '../domain/roles.ts';
import { TARGET_MACHINE } from '../domain/runtime.ts';
import { type Created, createOnce, type Operation } from '../operation.ts';
import { newToken, tokenHash } from '../secrets/bearer-token.ts';
import type { AuditEntry, ControlStore } from '../store/port.ts';
import type { Page, RowOf } from '../store/repositories/records.ts';
import type { Transaction } from '../store/transaction.ts';
import { audited, found, newVersion, nextVersion, requireVersion, versionOf } from './change.ts';

export interface ShownToken {
  readonly token: string;
}

export interface WithToken<V> {
  readonly view: V;
  readonly token: string;
}

/** What is written to a target, and what comes of it. */
interface TargetChangeSet {
  readonly set: Partial<RowOf<'target'>>;
  readonly what: `target.${AuditVerb<'target'>}`;
}

export class Targets {
  readonly #store: ControlStore;
  readonly #nowMs: () => number;

  constructor({ store, nowMs }: { readonly store: ControlStore; readonly nowMs: () => number }) {
    this.#store = store;
    this.#nowMs = nowMs;
  }

  list(siteId: string, page: Page): Promise<readonly RowOf<'target'>[]> {
    return this.#store.read((tx) => tx.targets.list({ siteId }, page));
  }

  async get(id: string): Promise<TargetView> {
    return targetView(found(await this.#store.read((tx) => tx.targets.find(id))));
  }

  create(operation: Operation, siteId: string, name: string): Promise<Created<TargetView, ShownToken>> {
    const nowMs = this.#nowMs();
    return createOnce(this.#store, { kind: 'site', siteId }, operation, nowMs, async (tx) => {
      const place = found(await tx.hierarchy.placeOfSite(siteId));
      const token = newToken('target');
      const row = newRow(siteId, name, token, nowMs);
      await tx.targets.add(row);
      // A source that is being published now waits for this one too.
      tx.notify({ topic: 'site_changed', reference: siteId });
      const after = targetView(row);
      const entry = audited(operation, { what: 'target.create', id: row.id, place, after });
      return { result: after, shownOnce: { token }, audit: [entry] };
    });
  }

  /** @throws Refusal `not_found`, `precondition_failed` */
  rename(operation: Operation, id: string, version: number, name: string): Promise<TargetView> {
    return this.#change(operation, id, (row) => {
      requireVersion(row, version);
      return { set: { name }, what: 'target.change' };
    });
  }

  /**
   * The token before stays good for a while, so that the target can be given the new one; one before that ends now.
   * @throws Refusal `not_found`, `target_state_conflict`
   */
  async rotateToken(
    operation: Operation,
    id: string,
    rotation: TokenRotation,
  ): Promise<WithToken<TargetView>> {
    const token = newToken('target');
    const overlapMs = (rotation.overlap_seconds ?? DEFAULT_OVERLAP_SECONDS) * 1000;
    const view = await this.#change(operation, id, (row, nowMs) => {
      if (row.state !== 'attached') throw new Refusal('target_state_conflict');
      const previous =
        overlapMs === 0
          ? { previousTokenHash: null, previousTokenEndsAtMs: null }
          : { previousTokenHash: row.tokenHash, previousTokenEndsAtMs: nowMs + overlapMs };
      return { set: { tokenHash: tokenHash(token), ...previous }, what: 'target.rotate_token' };
    });
    return { view, token };
  }

  /** @throws Refusal `not_found`, `target_state_conflict` */
  detach(operation: Operation, id: string): Promise<TargetView> {
    return this.#change(operation, id, (row) => {
      const moved = move(TARGET_MACHINE, row.state, 'detach');
      if (moved.kind === 'refused') throw new Refusal('target_state_conflict');
      const endsTokens = { previousTokenHash: null, previousTokenEndsAtMs: null };
      return { set: { state: moved.to, ...endsTokens }, what: 'target.detach' };
    });
  }

  async #change(
    operation: Operation,
    id: string,
    decide: (row: RowOf<'target'>, nowMs: number) => TargetChangeSet,
  ): Promise<TargetView> {
    const { siteId } = found(await this.#store.read((tx) => tx.targets.find(id)));
    const nowMs = this.#nowMs();
    return this.#store.mutate({ kind: 'site', siteId }, async (tx) => {
      const row = found(await tx.targets.find(id));
      const { set, what } = decide(row, nowMs);
      await tx.targets.change(row, set, nowMs);
      // Whoever waits for acknowledgements counts again.
      tx.notify({ topic: 'site_changed', reference: siteId });
      const after = targetView({ ...row, ...set, ...nextVersion(row, nowMs) });
      const change = { what, before: targetView(row), after };
      return { result: after, audit: [await auditOf(tx, operation, row, change)] };
    });
  }
}

async function auditOf(
  tx: Transaction,
  operation: Operation,
  { id, siteId }: RowOf<'target'>,
  change: { readonly what: TargetChangeSet['what']; readonly before: object; readonly after: object },
): Promise<AuditEntry> {
  const place: Place = found(await tx.hierarchy.placeOfSite(siteId));
  return audited(operation, { ...change, id, place });
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
    aheadSinceMs: null,
    ...newVersion(nowMs),
  };
}

export function targetView(row: Omit<RowOf<'target'>, 'raisedRevisions'>): TargetView {
  const { id, siteId, name, state, aheadRevision } = row;
  const ahead = aheadRevision === null || state !== 'attached' ? {} : { ahead_revision: aheadRevision };
  return { target_id: id, site_id: siteId, name, state, ...ahead, ...versionOf(row) };
}
