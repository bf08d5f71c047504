import { newId } from '../../domain/resource-identifiers.ts';
import type { Reach } from '../../domain/roles.ts';
import type { AuditEntry } from '../audit-entry.ts';
import type { Database } from '../database.ts';
import { eventWithin } from './hierarchy-repository.ts';
import { PRUNED_AT_ONCE, type RowOf } from './records.ts';

export interface AuditFilter {
  readonly environmentId?: string | undefined;
  readonly fleetId?: string | undefined;
  readonly siteId?: string | undefined;
  readonly resourceId?: string | undefined;
  readonly kind?: string | undefined;
  /** Only rows before this sequence number; the list is newest first. */
  readonly beforeSeq?: number | undefined;
  /** Only events within reach. */
  readonly reach: Reach;
  readonly limit: number;
}

type WholePlace = AuditEntry['place'] & { readonly siteUid?: string };

/** The audit trail: every mutation appends to it, nothing changes it, and pruning removes old events. */
export class AuditTrail {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  async append(entry: AuditEntry, nowMs: number): Promise<void> {
    const { kind, actor, resource, before, after, requestId } = entry;
    const { siteUid, ...place } = await this.#wholePlace(entry.place);
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
        siteUid: siteUid ?? null,
        before: before === undefined ? null : JSON.stringify(before),
        after: after === undefined ? null : JSON.stringify(after),
        requestId: requestId ?? null,
      })
      .execute();
  }

  /** Completes an event's place: a reader of an environment also reads the events of its sites. */
  async #wholePlace(place: AuditEntry['place']): Promise<WholePlace> {
    if (place.siteId === undefined) return place;
    const site: WholePlace | undefined = await this.#db
      .selectFrom('site')
      .innerJoin('fleet', 'fleet.id', 'site.fleetId')
      .select(['site.uid as siteUid', 'fleet.id as fleetId', 'fleet.environmentId as environmentId'])
      .where('site.id', '=', place.siteId)
      .executeTakeFirst();
    return { ...place, ...site };
  }

  /** Newest first. */
  list(filter: AuditFilter): Promise<readonly RowOf<'auditEvent'>[]> {
    let query = this.#db.selectFrom('auditEvent').selectAll();
    const { reach } = filter;
    if (reach.kind === 'below') query = query.where(eventWithin(reach));
    if (filter.environmentId !== undefined) query = query.where('environmentId', '=', filter.environmentId);
    if (filter.fleetId !== undefined) query = query.where('fleetId', '=', filter.fleetId);
    if (filter.siteId !== undefined) query = query.where('siteId', '=', filter.siteId);
    if (filter.resourceId !== undefined) query = query.where('resourceId', '=', filter.resourceId);
    if (filter.kind !== undefined) query = query.where('kind', '=', filter.kind);
    if (filter.beforeSeq !== undefined) query = query.where('seq', '<', filter.beforeSeq);
    return query.orderBy('seq', 'desc').limit(filter.limit).execute();
  }

  /** @returns the number of removed rows, at most {@link PRUNED_AT_ONCE} */
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
