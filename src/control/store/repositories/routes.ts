import type { Insertable, Updateable } from 'kysely';
import type { Database } from '../database.ts';
import type { Tables } from '../tables.ts';
import { expectUpdated, type Page, type RowOf } from './records.ts';

/** Routes, and who may call them. */
export class Routes {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  async add(row: Insertable<Tables['route']>): Promise<void> {
    await this.#db.insertInto('route').values(row).execute();
  }

  route(siteId: string, routeId: string): Promise<RowOf<'route'> | undefined> {
    return this.#db
      .selectFrom('route')
      .selectAll()
      .where('siteId', '=', siteId)
      .where('routeId', '=', routeId)
      .executeTakeFirst();
  }

  /** Writes over exactly the version that was read. @throws VersionConflictError */
  async change(
    row: Pick<RowOf<'route'>, 'siteId' | 'routeId' | 'version'>,
    set: Updateable<Tables['route']>,
    nowMs: number,
  ): Promise<void> {
    const next = { ...set, version: row.version + 1, updatedAtMs: nowMs };
    expectUpdated(
      await this.#db
        .updateTable('route')
        .set(next)
        .where('siteId', '=', row.siteId)
        .where('routeId', '=', row.routeId)
        .where('version', '=', row.version)
        .executeTakeFirstOrThrow(),
    );
  }

  async remove(siteId: string, routeId: string): Promise<boolean> {
    const { numDeletedRows } = await this.#db
      .deleteFrom('route')
      .where('siteId', '=', siteId)
      .where('routeId', '=', routeId)
      .executeTakeFirstOrThrow();
    return numDeletedRows > 0n;
  }

  ofSite(siteId: string, page: Page): Promise<readonly RowOf<'route'>[]> {
    let query = this.#db.selectFrom('route').selectAll().where('siteId', '=', siteId);
    if (page.after !== undefined) query = query.where('routeId', '>', page.after);
    return query.orderBy('routeId').limit(page.limit).execute();
  }

  async addSources(row: Insertable<Tables['routeSources']>): Promise<void> {
    await this.#db.insertInto('routeSources').values(row).execute();
  }

  sources(siteId: string, routeId: string): Promise<RowOf<'routeSources'> | undefined> {
    return this.#db
      .selectFrom('routeSources')
      .selectAll()
      .where('siteId', '=', siteId)
      .where('routeId', '=', routeId)
      .executeTakeFirst();
  }

  /** Writes over exactly the version that was read. @throws VersionConflictError */
  async changeSources(
    row: Pick<RowOf<'routeSources'>, 'siteId' | 'routeId' | 'version'>,
    set: Updateable<Tables['routeSources']>,
    nowMs: number,
  ): Promise<void> {
    const next = { ...set, version: row.version + 1, updatedAtMs: nowMs };
    expectUpdated(
      await this.#db
        .updateTable('routeSources')
        .set(next)
        .where('siteId', '=', row.siteId)
        .where('routeId', '=', row.routeId)
        .where('version', '=', row.version)
        .executeTakeFirstOrThrow(),
    );
  }

  async removeSources(siteId: string, routeId: string): Promise<boolean> {
    const { numDeletedRows } = await this.#db
      .deleteFrom('routeSources')
      .where('siteId', '=', siteId)
      .where('routeId', '=', routeId)
      .executeTakeFirstOrThrow();
    return numDeletedRows > 0n;
  }

  sourcesOfSite(siteId: string, page: Page): Promise<readonly RowOf<'routeSources'>[]> {
    let query = this.#db.selectFrom('routeSources').selectAll().where('siteId', '=', siteId);
    if (page.after !== undefined) query = query.where('routeId', '>', page.after);
    return query.orderBy('routeId').limit(page.limit).execute();
  }
}
