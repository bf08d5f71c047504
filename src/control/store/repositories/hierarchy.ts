import type { Insertable, Updateable } from 'kysely';
import { newId } from '../../domain/identifiers.ts';
import type { Place, Reach } from '../../domain/roles.ts';
import type { Database } from '../database.ts';
import type { Tables } from '../tables.ts';
import { reachedSites } from './reach.ts';
import { expectUpdated, type Page, type RowOf } from './records.ts';

/** What belongs to a site, in an order in which nothing refers to what is gone. */
const OF_SITE = [
  'freshness',
  'bundleStep',
  'bundleFile',
  'bundleBlob',
  'siteChange',
  'challenge',
  'derivedKey',
  'enrollment',
  'enrollmentPolicy',
  'sourceRevision',
  'source',
  'clientGrant',
  'client',
  'routeSources',
  'route',
  'broker',
  'blockedSubject',
  'audience',
  'target',
  'signingKey',
] as const;

/** Environments, fleets and Auth Sites. */
export class Hierarchy {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  async addEnvironment(row: Insertable<Tables['environment']>): Promise<void> {
    await this.#db.insertInto('environment').values(row).execute();
  }

  environment(id: string): Promise<RowOf<'environment'> | undefined> {
    return this.#db.selectFrom('environment').selectAll().where('id', '=', id).executeTakeFirst();
  }

  /** Writes over exactly the version that was read. @throws VersionConflictError */
  async changeEnvironment(
    row: Pick<RowOf<'environment'>, 'id' | 'version'>,
    set: Updateable<Tables['environment']>,
    nowMs: number,
  ): Promise<void> {
    const next = { ...set, version: row.version + 1, updatedAtMs: nowMs };
    expectUpdated(
      await this.#db
        .updateTable('environment')
        .set(next)
        .where('id', '=', row.id)
        .where('version', '=', row.version)
        .executeTakeFirstOrThrow(),
    );
  }

  async removeEnvironment(id: string): Promise<boolean> {
    const { numDeletedRows } = await this.#db
      .deleteFrom('environment')
      .where('id', '=', id)
      .executeTakeFirstOrThrow();
    return numDeletedRows > 0n;
  }

  environments(page: Page): Promise<readonly RowOf<'environment'>[]> {
    let query = this.#db.selectFrom('environment').selectAll();
    if (page.after !== undefined) query = query.where('id', '>', page.after);
    return query.orderBy('id').limit(page.limit).execute();
  }

  async addFleet(row: Insertable<Tables['fleet']>): Promise<void> {
    await this.#db.insertInto('fleet').values(row).execute();
  }

  fleet(id: string): Promise<RowOf<'fleet'> | undefined> {
    return this.#db.selectFrom('fleet').selectAll().where('id', '=', id).executeTakeFirst();
  }

  /** Writes over exactly the version that was read. @throws VersionConflictError */
  async changeFleet(
    row: Pick<RowOf<'fleet'>, 'id' | 'version'>,
    set: Updateable<Tables['fleet']>,
    nowMs: number,
  ): Promise<void> {
    const next = { ...set, version: row.version + 1, updatedAtMs: nowMs };
    expectUpdated(
      await this.#db
        .updateTable('fleet')
        .set(next)
        .where('id', '=', row.id)
        .where('version', '=', row.version)
        .executeTakeFirstOrThrow(),
    );
  }

  async removeFleet(id: string): Promise<boolean> {
    const { numDeletedRows } = await this.#db
      .deleteFrom('fleet')
      .where('id', '=', id)
      .executeTakeFirstOrThrow();
    return numDeletedRows > 0n;
  }

  fleets(environmentId: string, page: Page): Promise<readonly RowOf<'fleet'>[]> {
    let query = this.#db.selectFrom('fleet').selectAll().where('environmentId', '=', environmentId);
    if (page.after !== undefined) query = query.where('id', '>', page.after);
    return query.orderBy('id').limit(page.limit).execute();
  }

  async addSite(row: Omit<Insertable<Tables['site']>, 'uid'>): Promise<void> {
    const uid = newId('siteUid', row.createdAtMs);
    await this.#db
      .insertInto('site')
      .values({ ...row, uid })
      .execute();
  }

  site(id: string): Promise<RowOf<'site'> | undefined> {
    return this.#db.selectFrom('site').selectAll().where('id', '=', id).executeTakeFirst();
  }

  /** Writes over exactly the version that was read. @throws VersionConflictError */
  async changeSite(
    row: Pick<RowOf<'site'>, 'id' | 'version'>,
    set: Updateable<Tables['site']>,
    nowMs: number,
  ): Promise<void> {
    const next = { ...set, version: row.version + 1, updatedAtMs: nowMs };
    expectUpdated(
      await this.#db
        .updateTable('site')
        .set(next)
        .where('id', '=', row.id)
        .where('version', '=', row.version)
        .executeTakeFirstOrThrow(),
    );
  }

  /** With everything that is kept of it, but the audit trail and the public keys that were revoked. */
  async removeSite(id: string): Promise<boolean> {
    await this.#db
      .deleteFrom('keySet')
      .where('sourceId', 'in', (of) => of.selectFrom('source').select('id').where('siteId', '=', id))
      .execute();
    for (const table of OF_SITE) await this.#db.deleteFrom(table).where('siteId', '=', id).execute();
    const { numDeletedRows } = await this.#db
      .deleteFrom('site')
      .where('id', '=', id)
      .executeTakeFirstOrThrow();
    return numDeletedRows > 0n;
  }

  sites(fleetId: string, page: Page): Promise<readonly RowOf<'site'>[]> {
    let query = this.#db.selectFrom('site').selectAll().where('fleetId', '=', fleetId);
    if (page.after !== undefined) query = query.where('id', '>', page.after);
    return query.orderBy('id').limit(page.limit).execute();
  }

  /** Environments within reach. */
  reachedEnvironments(reach: Reach, page: Page): Promise<readonly RowOf<'environment'>[]> {
    if (reach.kind === 'everything') return this.environments(page);
    let query = this.#db
      .selectFrom('environment')
      .selectAll()
      .where('id', 'in', [...reach.environmentIds, '']);
    if (page.after !== undefined) query = query.where('id', '>', page.after);
    return query.orderBy('id').limit(page.limit).execute();
  }

  /** Sites within reach, wherever they are. */
  reachedSites(reach: Reach, page: Page): Promise<readonly RowOf<'site'>[]> {
    let query = this.#db.selectFrom('site').selectAll();
    if (reach.kind === 'below') query = query.where('id', 'in', reachedSites(reach));
    if (page.after !== undefined) query = query.where('id', '>', page.after);
    return query.orderBy('id').limit(page.limit).execute();
  }

  async hasIssuerUrl(issuerUrl: string): Promise<boolean> {
    const row = await this.#db
      .selectFrom('site')
      .select('id')
      .where('issuerUrl', '=', issuerUrl)
      .executeTakeFirst();
    return row !== undefined;
  }

  async environmentByName(name: string): Promise<RowOf<'environment'> | undefined> {
    return this.#db.selectFrom('environment').selectAll().where('name', '=', name).executeTakeFirst();
  }

  async fleetByName(environmentId: string, name: string): Promise<RowOf<'fleet'> | undefined> {
    return this.#db
      .selectFrom('fleet')
      .selectAll()
      .where('environmentId', '=', environmentId)
      .where('name', '=', name)
      .executeTakeFirst();
  }

  async allSiteIds(): Promise<readonly string[]> {
    const rows = await this.#db.selectFrom('site').select('id').orderBy('id').execute();
    return rows.map(({ id }) => id);
  }

  /** A site with all that is above it: where roles are looked for. */
  async placeOfSite(siteId: string): Promise<Place | undefined> {
    const row = await this.#db
      .selectFrom('site')
      .innerJoin('fleet', 'fleet.id', 'site.fleetId')
      .select(['fleet.id as fleetId', 'fleet.environmentId as environmentId'])
      .where('site.id', '=', siteId)
      .executeTakeFirst();
    return row && { ...row, siteId };
  }

  /**
   * Publishing moves a site on without making it another version for those who edit it.
   */
  async advance(
    siteId: string,
    set: Pick<
      Updateable<Tables['site']>,
      'revision' | 'head' | 'baseRevision' | 'floorRevision' | 'wholeNeeded'
    >,
  ): Promise<void> {
    await this.#db.updateTable('site').set(set).where('id', '=', siteId).execute();
  }
}
