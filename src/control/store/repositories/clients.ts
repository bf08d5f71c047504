import type { Insertable, Updateable } from 'kysely';
import type { Database } from '../database.ts';
import type { Tables } from '../tables.ts';
import { expectUpdated, type Page, type RowOf } from './records.ts';

/** Clients with their grants, and brokers. */
export class Clients {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  async add(row: Insertable<Tables['client']>): Promise<void> {
    await this.#db.insertInto('client').values(row).execute();
  }

  client(siteId: string, clientId: string): Promise<RowOf<'client'> | undefined> {
    return this.#db
      .selectFrom('client')
      .selectAll()
      .where('siteId', '=', siteId)
      .where('clientId', '=', clientId)
      .executeTakeFirst();
  }

  /** Writes over exactly the version that was read. @throws VersionConflictError */
  async change(
    row: Pick<RowOf<'client'>, 'siteId' | 'clientId' | 'version'>,
    set: Updateable<Tables['client']>,
    nowMs: number,
  ): Promise<void> {
    const next = { ...set, version: row.version + 1, updatedAtMs: nowMs };
    expectUpdated(
      await this.#db
        .updateTable('client')
        .set(next)
        .where('siteId', '=', row.siteId)
        .where('clientId', '=', row.clientId)
        .where('version', '=', row.version)
        .executeTakeFirstOrThrow(),
    );
  }

  async remove(siteId: string, clientId: string): Promise<boolean> {
    const { numDeletedRows } = await this.#db
      .deleteFrom('client')
      .where('siteId', '=', siteId)
      .where('clientId', '=', clientId)
      .executeTakeFirstOrThrow();
    return numDeletedRows > 0n;
  }

  ofSite(siteId: string, page: Page): Promise<readonly RowOf<'client'>[]> {
    let query = this.#db.selectFrom('client').selectAll().where('siteId', '=', siteId);
    if (page.after !== undefined) query = query.where('clientId', '>', page.after);
    return query.orderBy('clientId').limit(page.limit).execute();
  }

  grants(siteId: string, clientId: string): Promise<readonly RowOf<'clientGrant'>[]> {
    return this.#db
      .selectFrom('clientGrant')
      .selectAll()
      .where('siteId', '=', siteId)
      .where('clientId', '=', clientId)
      .orderBy('resource')
      .execute();
  }

  grant(siteId: string, clientId: string, resource: string): Promise<RowOf<'clientGrant'> | undefined> {
    return this.#db
      .selectFrom('clientGrant')
      .selectAll()
      .where('siteId', '=', siteId)
      .where('clientId', '=', clientId)
      .where('resource', '=', resource)
      .executeTakeFirst();
  }

  grantsPage(siteId: string, clientId: string, page: Page): Promise<readonly RowOf<'clientGrant'>[]> {
    let query = this.#db
      .selectFrom('clientGrant')
      .selectAll()
      .where('siteId', '=', siteId)
      .where('clientId', '=', clientId);
    if (page.after !== undefined) query = query.where('resource', '>', page.after);
    return query.orderBy('resource').limit(page.limit).execute();
  }

  async countGrants(siteId: string, clientId: string): Promise<number> {
    const row = await this.#db
      .selectFrom('clientGrant')
      .select((of) => of.fn.countAll<number>().as('grants'))
      .where('siteId', '=', siteId)
      .where('clientId', '=', clientId)
      .executeTakeFirstOrThrow();
    return Number(row.grants);
  }

  async count(siteId: string): Promise<number> {
    const row = await this.#db
      .selectFrom('client')
      .select((of) => of.fn.countAll<number>().as('clients'))
      .where('siteId', '=', siteId)
      .executeTakeFirstOrThrow();
    return Number(row.clients);
  }

  async removeGrants(siteId: string, clientId: string): Promise<void> {
    await this.#db
      .deleteFrom('clientGrant')
      .where('siteId', '=', siteId)
      .where('clientId', '=', clientId)
      .execute();
  }

  allGrants(siteId: string): Promise<readonly RowOf<'clientGrant'>[]> {
    return this.#db
      .selectFrom('clientGrant')
      .selectAll()
      .where('siteId', '=', siteId)
      .orderBy('clientId')
      .orderBy('resource')
      .execute();
  }

  async putGrant(row: Insertable<Tables['clientGrant']>): Promise<void> {
    await this.#db
      .insertInto('clientGrant')
      .values(row)
      .onConflict((conflict) =>
        conflict
          .columns(['siteId', 'clientId', 'resource'])
          .doUpdateSet({ access: row.access, createdAtMs: row.createdAtMs }),
      )
      .execute();
  }

  async removeGrant(siteId: string, clientId: string, resource: string): Promise<boolean> {
    const { numDeletedRows } = await this.#db
      .deleteFrom('clientGrant')
      .where('siteId', '=', siteId)
      .where('clientId', '=', clientId)
      .where('resource', '=', resource)
      .executeTakeFirstOrThrow();
    return numDeletedRows > 0n;
  }

  async addBroker(row: Insertable<Tables['broker']>): Promise<void> {
    await this.#db.insertInto('broker').values(row).execute();
  }

  broker(siteId: string, issuer: string): Promise<RowOf<'broker'> | undefined> {
    return this.#db
      .selectFrom('broker')
      .selectAll()
      .where('siteId', '=', siteId)
      .where('issuer', '=', issuer)
      .executeTakeFirst();
  }

  /** Writes over exactly the version that was read. @throws VersionConflictError */
  async changeBroker(
    row: Pick<RowOf<'broker'>, 'siteId' | 'issuer' | 'version'>,
    set: Updateable<Tables['broker']>,
    nowMs: number,
  ): Promise<void> {
    const next = { ...set, version: row.version + 1, updatedAtMs: nowMs };
    expectUpdated(
      await this.#db
        .updateTable('broker')
        .set(next)
        .where('siteId', '=', row.siteId)
        .where('issuer', '=', row.issuer)
        .where('version', '=', row.version)
        .executeTakeFirstOrThrow(),
    );
  }

  async removeBroker(siteId: string, issuer: string): Promise<boolean> {
    const { numDeletedRows } = await this.#db
      .deleteFrom('broker')
      .where('siteId', '=', siteId)
      .where('issuer', '=', issuer)
      .executeTakeFirstOrThrow();
    return numDeletedRows > 0n;
  }

  brokers(siteId: string, page: Page): Promise<readonly RowOf<'broker'>[]> {
    let query = this.#db.selectFrom('broker').selectAll().where('siteId', '=', siteId);
    if (page.after !== undefined) query = query.where('issuer', '>', page.after);
    return query.orderBy('issuer').limit(page.limit).execute();
  }
}
