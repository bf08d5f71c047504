import type { Insertable } from 'kysely';
import type { Database } from '../database.ts';
import type { Tables } from '../tables.ts';
import type { Page, RowOf } from './records.ts';
import { VersionedTable } from './versioned-table.ts';

/** Clients and their grants. */
export class Clients extends VersionedTable<'client'> {
  constructor(db: Database) {
    super(db, 'client');
  }

  grants(siteId: string, clientId: string): Promise<readonly RowOf<'clientGrant'>[]> {
    return this.db
      .selectFrom('clientGrant')
      .selectAll()
      .where('siteId', '=', siteId)
      .where('clientId', '=', clientId)
      .orderBy('resource')
      .execute();
  }

  grant(siteId: string, clientId: string, resource: string): Promise<RowOf<'clientGrant'> | undefined> {
    return this.db
      .selectFrom('clientGrant')
      .selectAll()
      .where('siteId', '=', siteId)
      .where('clientId', '=', clientId)
      .where('resource', '=', resource)
      .executeTakeFirst();
  }

  grantsPage(siteId: string, clientId: string, page: Page): Promise<readonly RowOf<'clientGrant'>[]> {
    let query = this.db
      .selectFrom('clientGrant')
      .selectAll()
      .where('siteId', '=', siteId)
      .where('clientId', '=', clientId);
    if (page.after !== undefined) query = query.where('resource', '>', page.after);
    return query.orderBy('resource').limit(page.limit).execute();
  }

  async countGrants(siteId: string, clientId: string): Promise<number> {
    const row = await this.db
      .selectFrom('clientGrant')
      .select((of) => of.fn.countAll<number>().as('grants'))
      .where('siteId', '=', siteId)
      .where('clientId', '=', clientId)
      .executeTakeFirstOrThrow();
    return Number(row.grants);
  }

  async count(siteId: string): Promise<number> {
    const row = await this.db
      .selectFrom('client')
      .select((of) => of.fn.countAll<number>().as('clients'))
      .where('siteId', '=', siteId)
      .executeTakeFirstOrThrow();
    return Number(row.clients);
  }

  async removeGrants(siteId: string, clientId: string): Promise<void> {
    await this.db
      .deleteFrom('clientGrant')
      .where('siteId', '=', siteId)
      .where('clientId', '=', clientId)
      .execute();
  }

  allGrants(siteId: string): Promise<readonly RowOf<'clientGrant'>[]> {
    return this.db
      .selectFrom('clientGrant')
      .selectAll()
      .where('siteId', '=', siteId)
      .orderBy('clientId')
      .orderBy('resource')
      .execute();
  }

  async putGrant(row: Insertable<Tables['clientGrant']>): Promise<void> {
    await this.db
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
    const { numDeletedRows } = await this.db
      .deleteFrom('clientGrant')
      .where('siteId', '=', siteId)
      .where('clientId', '=', clientId)
      .where('resource', '=', resource)
      .executeTakeFirstOrThrow();
    return numDeletedRows > 0n;
  }
}
