import { type SqlBool, sql } from 'kysely';
import type { AuditKind } from '../../domain/audit-kinds.ts';
import { newId } from '../../domain/resource-identifiers.ts';
import type { Reach } from '../../domain/roles.ts';
import { isOneOf, type RangedPage, rangedPage } from './ranged-list.ts';
import { type Below, distinct, type Reached, whereAny } from './reached.ts';
import type { RowOf } from './records.ts';
import { Repository } from './repository.ts';

/** An audit event before it gets a time and a sequence number. Never holds a secret. */
export interface AuditEntry {
  readonly kind: AuditKind;
  /** `oidc:…`, `token:…`, `bootstrap`, `workload:…`, `target:…` or `control` itself. */
  readonly actor: string;
  readonly resource: { readonly kind: string; readonly id: string };
  readonly place: {
    readonly environmentId?: string | undefined;
    readonly fleetId?: string | undefined;
    readonly siteId?: string | undefined;
  };
  readonly before?: object | undefined;
  readonly after?: object | undefined;
  readonly requestId?: string | undefined;
  /** The operator's reason. */
  readonly reason?: string | undefined;
}

export interface AuditFilter {
  readonly environmentId?: string | undefined;
  readonly fleetId?: string | undefined;
  readonly siteId?: string | undefined;
  readonly resourceId?: string | undefined;
  readonly kind?: string | undefined;
  readonly actor?: string | undefined;
  readonly sinceMs?: number | undefined;
  /** End of the period, exclusive. */
  readonly untilMs?: number | undefined;
  /** Only rows before this sequence number; the list is newest first. */
  readonly beforeSeq?: number | undefined;
  /** Only events within reach. */
  readonly reach: Reach;
  readonly limit: number;
}

/**
 * Twice the largest allowed difference of the clocks, because instances number events by one sequence but use their own
 * clocks.
 */
const CLOCKS_APART_MS = 600_000;

/** Columns of filters, the most selective first. Each has an index with the sequence number. */
const FILTER_COLUMNS = ['resourceId', 'siteId', 'fleetId', 'environmentId', 'kind'] as const;

type WholePlace = AuditEntry['place'] & { readonly siteUid?: string };

/** The audit trail: every mutation appends to it, nothing changes it, and pruning removes old events. */
export class AuditTrail extends Repository {
  append(entry: AuditEntry, nowMs: number): Promise<void> {
    return this.appendAll([entry], nowMs);
  }

  async appendAll(entries: readonly AuditEntry[], nowMs: number): Promise<void> {
    const places = new Map<string, WholePlace>();
    for (const { place } of entries) {
      const { siteId } = place;
      if (siteId !== undefined && !places.has(siteId)) places.set(siteId, await this.#wholePlace(place));
    }
    const rows = entries.map(({ kind, actor, resource, place: given, before, after, requestId, reason }) => {
      const { siteUid, ...place }: WholePlace = { ...given, ...places.get(given.siteId ?? '') };
      return {
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
        reason: reason ?? null,
      };
    });
    await this.insertAll('auditEvent', rows);
  }

  /** Completes an event's place: a reader of an environment also reads the events of its sites. */
  async #wholePlace(place: AuditEntry['place']): Promise<WholePlace> {
    if (place.siteId === undefined) return place;
    const site: WholePlace | undefined = await this.db
      .selectFrom('site')
      .innerJoin('fleet', 'fleet.id', 'site.fleetId')
      .select(['site.uid as siteUid', 'fleet.id as fleetId', 'fleet.environmentId as environmentId'])
      .where('site.id', '=', place.siteId)
      .executeTakeFirst();
    return { ...place, ...site };
  }

  /** Newest first. */
  async list(filter: AuditFilter): Promise<RangedPage<RowOf<'auditEvent'>>> {
    const { limit, reach, environmentId, fleetId, siteId, resourceId, kind, actor } = filter;
    const shortcuts = FILTER_COLUMNS.flatMap((column) => {
      const value = filter[column];
      return value === undefined ? [] : [{ [column]: value }];
    });
    const reached = reach.kind === 'below' ? await this.#reached(reach) : undefined;
    return rangedPage(this.db, {
      table: 'auditEvent',
      orderedBy: 'seq',
      direction: 'desc',
      whole: reached?.ranges ?? [shortcuts[0] ?? {}],
      shortcuts,
      within: reached?.within,
      filter: { environmentId, fleetId, siteId, resourceId, kind, actor },
      ...(await this.#period(filter)),
      limit,
    });
  }

  /** Bounds a period's events by sequence numbers, with the exact condition. */
  async #period({ beforeSeq, sinceMs, untilMs }: AuditFilter) {
    const at = sql.ref('atMs');
    const events = this.db.selectFrom('auditEvent').select('seq').limit(1);
    const earlier =
      sinceMs === undefined
        ? undefined
        : await events
            .where('atMs', '<', sinceMs - CLOCKS_APART_MS)
            .orderBy('atMs', 'desc')
            .executeTakeFirst();
    const later =
      untilMs === undefined
        ? undefined
        : await events
            .where('atMs', '>', untilMs + CLOCKS_APART_MS)
            .orderBy('atMs', 'asc')
            .executeTakeFirst();
    return {
      after: later === undefined ? beforeSeq : Math.min(later.seq, beforeSeq ?? later.seq),
      upTo: earlier?.seq,
      conditions: [
        ...(sinceMs === undefined ? [] : [sql<SqlBool>`${at} >= ${sinceMs}`]),
        ...(untilMs === undefined ? [] : [sql<SqlBool>`${at} < ${untilMs}`]),
      ],
    };
  }

  /**
   * Events of the installation require reach of all of it. Events of a deleted site require reach of the place that
   * contained it, because another site may use its identifier now.
   */
  async #reached(reach: Below): Promise<Reached<'auditEvent'>> {
    const { environmentIds, fleetIds } = distinct(reach);
    const sites = await this.db
      .selectFrom('site')
      .select('uid')
      .where('id', 'in', [...reach.siteIds, ''])
      .execute();
    const siteUids = sites.flatMap(({ uid }) => uid ?? []);
    return {
      ranges: [
        ...environmentIds.map((environmentId) => ({ environmentId })),
        ...fleetIds.map((fleetId) => ({ fleetId })),
        ...siteUids.map((siteUid) => ({ siteUid })),
      ],
      within: whereAny([
        ...isOneOf('environmentId', environmentIds),
        ...isOneOf('fleetId', fleetIds),
        ...isOneOf('siteUid', siteUids),
      ]),
    };
  }

  /** Whether a site has an event above a sequence number, except of these kinds of resources. */
  async hasAfter(siteId: string, seq: number, except: readonly string[]): Promise<boolean> {
    const row = await this.db
      .selectFrom('auditEvent')
      .select('seq')
      .where('siteId', '=', siteId)
      .where('seq', '>', seq)
      .where('resourceKind', 'not in', [...except])
      .limit(1)
      .executeTakeFirst();
    return row !== undefined;
  }

  /** 0 without events. */
  async newestSeqOf(siteId: string): Promise<number> {
    const query = this.db.selectFrom('auditEvent').select('seq').where('siteId', '=', siteId);
    return (await query.orderBy('seq', 'desc').limit(1).executeTakeFirst())?.seq ?? 0;
  }

  /** 0 without events. */
  async newestSeq(): Promise<number> {
    const query = this.db.selectFrom('auditEvent').select('seq').orderBy('seq', 'desc').limit(1);
    return (await query.executeTakeFirst())?.seq ?? 0;
  }

  /** Numbers of the events after a sequence number, by place and kind of resource. */
  countsAfter(seq: number) {
    const groups = ['environmentId', 'fleetId', 'siteId', 'siteUid', 'resourceKind'] as const;
    return this.db
      .selectFrom('auditEvent')
      .select((of) => [
        ...groups,
        of.fn.countAll<number>().as('events'),
        of.fn.max<number>('seq').as('newestSeq'),
      ])
      .where('seq', '>', seq)
      .groupBy(groups)
      .execute();
  }

  /** @returns the number of removed rows, at most 1000 */
  prune(beforeMs: number): Promise<number> {
    return this.pruneBelow('auditEvent', 'seq', 'atMs', beforeMs);
  }
}
