import type { Updateable } from 'kysely';
import type { Place, Reach } from '../../domain/roles.ts';
import type { Database } from '../database.ts';
import type { Tables } from '../tables.ts';
import { reachedSites } from './reach.ts';
import type { Page, RowOf } from './records.ts';

/** The hierarchy of environments, fleets and Auth Sites, and which of them a reach covers. */
export class Hierarchy {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  /** Environments within reach. */
  reachedEnvironments(reach: Reach, page: Page): Promise<readonly RowOf<'environment'>[]> {
    let query = this.#db.selectFrom('environment').selectAll();
    if (reach.kind === 'below') query = query.where('id', 'in', [...reach.environmentIds, '']);
    if (page.after !== undefined) query = query.where('id', '>', page.after);
    return query.orderBy('id').limit(page.limit).execute();
  }

  /** Sites within reach, at any level. */
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

  /** A site's place with everything above it, for checking roles. */
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
   * Updates a site's publishing columns without a new version, so that edits by operators do not conflict.
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
