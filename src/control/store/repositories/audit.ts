import { newId } from '../../domain/identifiers.ts';
import type { AuditEntry } from '../port.ts';
import type { Database } from '../transaction.ts';
import { PRUNED_AT_ONCE, type RowOf } from './records.ts';

export interface AuditFilter {
  readonly environmentId?: string;
  readonly fleetId?: string;
  readonly siteId?: string;
  readonly resourceId?: string;
  readonly kind?: string;
  /** Newest first: only rows before this sequence number. */
  readonly beforeSeq?: number;
  readonly limit: number;
}

/** The audit trail: written with every mutation, never changed, pruned by age. */
export class AuditTrail {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  async append(entry: AuditEntry, nowMs: number): Promise<void> {
    const { kind, actor, resource, place, before, after, requestId } = entry;
    await this.#db
      .insertInto('auditEvent')
      .values({
        id: newId('auditEvent', nowMs),
        atMs: nowMs,
        kind,
        actor,
        resourceKind: resource.kind,
        resourceId: resource.id,
        environmentId: place.environmentId ?? null,
        fleetId: place.fleetId ?? null,
        siteId: place.siteId ?? null,
        before: before === undefined ? null : JSON.stringify(before),
        after: after === undefined ? null : JSON.stringify(after),
        requestId: requestId ?? null,
      })
      .execute();
  }

  /** Newest first. */
  list(filter: AuditFilter): Promise<readonly RowOf<'auditEvent'>[]> {
    let query = this.#db.selectFrom('auditEvent').selectAll();
    if (filter.environmentId !== undefined) query = query.where('environmentId', '=', filter.environmentId);
    if (filter.fleetId !== undefined) query = query.where('fleetId', '=', filter.fleetId);
    if (filter.siteId !== undefined) query = query.where('siteId', '=', filter.siteId);
    if (filter.resourceId !== undefined) query = query.where('resourceId', '=', filter.resourceId);
    if (filter.kind !== undefined) query = query.where('kind', '=', filter.kind);
    if (filter.beforeSeq !== undefined) query = query.where('seq', '<', filter.beforeSeq);
    return query.orderBy('seq', 'desc').limit(filter.limit).execute();
  }

  /** @returns how many were removed: {@link PRUNED_AT_ONCE} at most */
  async prune(beforeMs: number): Promise<number> {
    const { numDeletedRows } = await this.#db
      .deleteFrom('auditEvent')
      .where('seq', 'in', (of) =>
        of.selectFrom('auditEvent').select('seq').where('atMs', '<', beforeMs).limit(PRUNED_AT_ONCE),
      )
      .executeTakeFirstOrThrow();
    return Number(numDeletedRows);
  }
}
