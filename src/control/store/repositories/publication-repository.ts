import type { ExpressionBuilder } from 'kysely';
import { inParts, type Page, type RowOf } from './records.ts';
import { Repository } from './repository.ts';
import type { Tables } from './tables.ts';

/** A range of a site's key IDs, from `from` inclusive to `before` exclusive. */
export interface KeyRange {
  readonly from: string;
  /** Undefined for no upper bound. */
  readonly before: string | undefined;
}

/** Bulk reads for publishing. Each query costs in proportion to its result, not to the site's size. */
export class Publication extends Repository {
  /**
   * Keys that a bundle lists: not ended, including revoked ones, of existing clients. A client may be deleted before its
   * revoked keys have ended.
   */
  keysIn(
    siteId: string,
    { from, before }: KeyRange,
    nowSeconds: number,
    { after, limit }: Page,
  ): Promise<readonly RowOf<'derivedKey'>[]> {
    let query = this.db
      .selectFrom('derivedKey')
      .selectAll()
      .where('siteId', '=', siteId)
      .where('keyId', after === undefined ? '>=' : '>', after ?? from)
      .where('expiresAtSeconds', '>', nowSeconds)
      .where(hasClient);
    if (before !== undefined) query = query.where('keyId', '<', before);
    return query.orderBy('keyId').limit(limit).execute();
  }

  /** Those of the given keys that a bundle lists, as in {@link Publication.keysIn}. */
  keys(
    siteId: string,
    keyIds: readonly string[],
    nowSeconds: number,
  ): Promise<readonly RowOf<'derivedKey'>[]> {
    if (keyIds.length === 0) return Promise.resolve([]);
    return this.db
      .selectFrom('derivedKey')
      .selectAll()
      .where('siteId', '=', siteId)
      .where('keyId', 'in', [...keyIds])
      .where('expiresAtSeconds', '>', nowSeconds)
      .where(hasClient)
      .orderBy('keyId')
      .execute();
  }

  /** Selects the routes with allowed sources, which bundles list. */
  async publishedRoutes(siteId: string, routeIds: readonly string[]): Promise<ReadonlySet<string>> {
    const published = new Set<string>();
    for (const part of inParts(routeIds)) {
      const rows = await this.db
        .selectFrom('routeSources')
        .select('routeId')
        .where('siteId', '=', siteId)
        .where('routeId', 'in', part)
        .execute();
      for (const { routeId } of rows) published.add(routeId);
    }
    return published;
  }

  /** Observed routes that bundles list, and when the last of their observations ends; undefined without one. */
  async observedRoutes(
    siteId: string,
    nowSeconds: number,
  ): Promise<{ readonly count: number; readonly untilSeconds: number | undefined }> {
    const row = await this.db
      .selectFrom('route')
      .innerJoin('routeSources', (on) =>
        on
          .onRef('routeSources.siteId', '=', 'route.siteId')
          .onRef('routeSources.routeId', '=', 'route.routeId'),
      )
      .select((of) => [
        of.fn.countAll<number>().as('routes'),
        of.fn.max('route.observeUntilSeconds').as('untilSeconds'),
      ])
      .where('route.siteId', '=', siteId)
      .where('route.observeUntilSeconds', '>', nowSeconds)
      .executeTakeFirstOrThrow();
    const { routes, untilSeconds } = row;
    return { count: Number(routes), untilSeconds: untilSeconds === null ? undefined : Number(untilSeconds) };
  }

  /** Sites whose newest whole bundle lacks members because of a target. */
  async sitesWithheldMembers(): Promise<readonly string[]> {
    const rows = await this.db
      .selectFrom('site')
      .select('id')
      .where((of) => of.or([of('observations', '=', 'withheld'), of('acceptedProofs', '=', 'withheld')]))
      .execute();
    return rows.map(({ id }) => id);
  }

  /** Increments the version of routes, whose views change with their sources. */
  async touchRoutes(siteId: string, routeIds: readonly string[], nowMs: number): Promise<void> {
    for (const part of inParts(routeIds)) {
      await this.db
        .updateTable('route')
        .set(({ eb }) => ({ version: eb('version', '+', 1), updatedAtMs: nowMs }))
        .where('siteId', '=', siteId)
        .where('routeId', 'in', part)
        .execute();
    }
  }

  async keyIdsOfClient(siteId: string, clientId: string, nowSeconds: number): Promise<readonly string[]> {
    const rows = await this.db
      .selectFrom('derivedKey')
      .select('keyId')
      .where('siteId', '=', siteId)
      .where('clientId', '=', clientId)
      .where('expiresAtSeconds', '>', nowSeconds)
      .execute();
    return rows.map(({ keyId }) => keyId);
  }

  async countKeysIn(siteId: string, { from, before }: KeyRange, nowSeconds: number): Promise<number> {
    let query = this.db
      .selectFrom('derivedKey')
      .select((of) => of.fn.countAll<number>().as('keys'))
      .where('siteId', '=', siteId)
      .where('keyId', '>=', from)
      .where('expiresAtSeconds', '>', nowSeconds);
    if (before !== undefined) query = query.where('keyId', '<', before);
    return Number((await query.executeTakeFirstOrThrow()).keys);
  }

  /** IDs of keys listed or revoked after a revision. Scans every key of the site. */
  async keyIdsPublishedAfter(
    siteId: string,
    revision: number,
    from: string,
    limit: number,
  ): Promise<readonly string[]> {
    const rows = await this.db
      .selectFrom('derivedKey')
      .select('keyId')
      .where('siteId', '=', siteId)
      .where('keyId', '>', from)
      .where((is) => is.or([is('listedRevision', '>', revision), is('revokedRevision', '>', revision)]))
      .orderBy('keyId')
      .limit(limit)
      .execute();
    return rows.map(({ keyId }) => keyId);
  }

  clients(siteId: string, clientIds: readonly string[]): Promise<readonly RowOf<'client'>[]> {
    if (clientIds.length === 0) return Promise.resolve([]);
    return this.db
      .selectFrom('client')
      .selectAll()
      .where('siteId', '=', siteId)
      .where('clientId', 'in', [...clientIds])
      .orderBy('clientId')
      .execute();
  }

  grantsOf(siteId: string, clientIds: readonly string[]): Promise<readonly RowOf<'clientGrant'>[]> {
    if (clientIds.length === 0) return Promise.resolve([]);
    return this.db
      .selectFrom('clientGrant')
      .selectAll()
      .where('siteId', '=', siteId)
      .where('clientId', 'in', [...clientIds])
      .orderBy('clientId')
      .orderBy('resource')
      .execute();
  }

  hasPolicyChange(siteId: string): Promise<boolean> {
    return this.has('siteChange', { siteId, kind: 'policy' });
  }

  /** Time of the oldest unpublished change of anything but keys. */
  async contentChangedSince(siteId: string): Promise<number | undefined> {
    const row = await this.db
      .selectFrom('siteChange')
      .select('createdAtMs')
      .where('siteId', '=', siteId)
      .where('kind', 'in', ['policy', 'client'])
      .orderBy('seq')
      .limit(1)
      .executeTakeFirst();
    return row?.createdAtMs;
  }

  /** Changes that revoke a published key. */
  revocations(siteId: string, limit: number): Promise<readonly RowOf<'siteChange'>[]> {
    return this.db
      .selectFrom('siteChange')
      .innerJoin('derivedKey', 'derivedKey.keyId', 'siteChange.reference')
      .selectAll('siteChange')
      .where('siteChange.siteId', '=', siteId)
      .where('siteChange.kind', '=', 'key')
      .where('derivedKey.status', '=', 'revoked')
      .where('derivedKey.listedRevision', 'is not', null)
      .orderBy('siteChange.seq')
      .limit(limit)
      .execute();
  }

  /** Removes exactly these changes, not later ones. */
  async settle(changes: readonly Pick<RowOf<'siteChange'>, 'seq'>[]): Promise<void> {
    if (changes.length === 0) return;
    const seqs = changes.map(({ seq }) => seq);
    await this.db.deleteFrom('siteChange').where('seq', 'in', seqs).execute();
  }

  /**
   * Sites due for publication without a change: never published, requested, a whole bundle that is too old, or a document
   * with a future timestamp.
   */
  async sitesDue(nowMs: number): Promise<readonly string[]> {
    const rows = await this.db
      .selectFrom('site')
      .leftJoin('bundleStep', (on) =>
        on.onRef('bundleStep.siteId', '=', 'site.id').onRef('bundleStep.revision', '=', 'site.baseRevision'),
      )
      .leftJoin('bundleStep as newest', (on) =>
        on.onRef('newest.siteId', '=', 'site.id').onRef('newest.revision', '=', 'site.revision'),
      )
      .select(['site.id', 'site.bundleLifetimeSeconds', 'bundleStep.publishedAtMs', 'site.wholeNeeded'])
      .select('newest.publishedAtMs as newestPublishedAtMs')
      .execute();
    const isDue = (row: (typeof rows)[number]) =>
      row.wholeNeeded === 1 ||
      row.publishedAtMs === null ||
      row.publishedAtMs > nowMs ||
      (row.newestPublishedAtMs ?? 0) > nowMs ||
      nowMs - row.publishedAtMs >= halfLifeMs(row.bundleLifetimeSeconds);
    return rows.filter(isDue).map(({ id }) => id);
  }

  /** Sites with a retiring key whose overlap is over. */
  async sitesWithRetiredSigners(nowMs: number): Promise<readonly string[]> {
    const rows = await this.db
      .selectFrom('signingKey')
      .select('siteId')
      .distinct()
      .where('state', '=', 'retiring')
      .where('retireAtMs', '<=', nowMs)
      .execute();
    return rows.map(({ siteId }) => siteId);
  }

  /** Position of every published site's chain. */
  published(): Promise<readonly Pick<RowOf<'site'>, 'id' | 'revision' | 'head' | 'policyRevision'>[]> {
    return this.db
      .selectFrom('site')
      .select(['id', 'revision', 'head', 'policyRevision'])
      .where('head', 'is not', null)
      .orderBy('id')
      .execute();
  }

  /** Time of the oldest unpublished change, by site. */
  async oldestPending(): Promise<ReadonlyMap<string, number>> {
    const rows = await this.db
      .selectFrom('siteChange')
      .select((of) => ['siteId', of.fn.min('createdAtMs').as('sinceMs')])
      .groupBy('siteId')
      .execute();
    return new Map(rows.map(({ siteId, sinceMs }) => [siteId, Number(sinceMs)]));
  }

  /** Revisions of the stored whole bundles, newest first, with their publication times. */
  bases(
    siteId: string,
  ): Promise<readonly { readonly revision: number; readonly publishedAtMs: number | null }[]> {
    return this.db
      .selectFrom('bundleFile')
      .leftJoin('bundleStep', (on) =>
        on
          .onRef('bundleStep.siteId', '=', 'bundleFile.siteId')
          .onRef('bundleStep.revision', '=', 'bundleFile.revision'),
      )
      .select(['bundleFile.revision', 'bundleStep.publishedAtMs'])
      .where('bundleFile.siteId', '=', siteId)
      .where('bundleFile.name', '=', 'bundle.jws')
      .orderBy('bundleFile.revision', 'desc')
      .execute();
  }
}

function hasClient(is: ExpressionBuilder<Tables, 'derivedKey'>) {
  return is.exists(
    is
      .selectFrom('client')
      .select('client.clientId')
      .whereRef('client.siteId', '=', 'derivedKey.siteId')
      .whereRef('client.clientId', '=', 'derivedKey.clientId'),
  );
}

function halfLifeMs(lifetimeSeconds: number): number {
  return lifetimeSeconds * 500;
}
