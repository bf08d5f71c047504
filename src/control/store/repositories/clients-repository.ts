import { setImmediate as nextTurn } from 'node:timers/promises';
import { type Insertable, sql } from 'kysely';
import { inParts, type Page, type RowOf } from './records.ts';
import type { Tables } from './tables.ts';
import { VersionedTable } from './versioned-table.ts';

type GrantOfClient = Pick<RowOf<'clientGrant'>, 'clientId' | 'resource'>;

/** Clients and their grants. */
export class Clients extends VersionedTable<'client'> {
  grants(siteId: string, clientId: string): Promise<readonly RowOf<'clientGrant'>[]> {
    return this.rows('clientGrant', { siteId, clientId }, 'resource');
  }

  grant(siteId: string, clientId: string, resource: string): Promise<RowOf<'clientGrant'> | undefined> {
    return this.row('clientGrant', { siteId, clientId, resource });
  }

  grantsPage(siteId: string, clientId: string, page: Page): Promise<readonly RowOf<'clientGrant'>[]> {
    return this.page('clientGrant', { siteId, clientId }, 'resource', page);
  }

  /** Grants of all clients, ordered by client and resource. @param after the last grant before the page */
  siteGrantsPage(
    siteId: string,
    after: { readonly clientId: string; readonly resource: string } | undefined,
    limit: number,
  ): Promise<readonly RowOf<'clientGrant'>[]> {
    let query = this.db.selectFrom('clientGrant').selectAll().where('siteId', '=', siteId);
    if (after !== undefined) {
      const { clientId, resource } = after;
      query = query.where((is) => is(is.refTuple('clientId', 'resource'), '>', is.tuple(clientId, resource)));
    }
    return query.orderBy('clientId').orderBy('resource').limit(limit).execute();
  }

  countGrants(siteId: string, clientId: string): Promise<number> {
    return this.countRows('clientGrant', { siteId, clientId });
  }

  count(siteId: string): Promise<number> {
    return this.countRows('client', { siteId });
  }

  allGrants(siteId: string): Promise<readonly RowOf<'clientGrant'>[]> {
    return this.rows('clientGrant', { siteId }, 'clientId', 'resource');
  }

  putGrants(rows: readonly RowOf<'clientGrant'>[]): Promise<void> {
    return this.putAll('clientGrant', ['siteId', 'clientId', 'resource'], rows);
  }

  async removeEachGrant(siteId: string, grants: readonly GrantOfClient[]): Promise<void> {
    for (const part of inParts(grants)) {
      const names = part.map(({ clientId, resource }) => sql`(${clientId}, ${resource})`);
      await sql`delete from client_grant where site_id = ${siteId}
        and (client_id, resource) in (values ${sql.join(names)})`.execute(this.db);
      if (part.length < grants.length) await nextTurn();
    }
  }

  removeGrantsOf(siteId: string, clientIds: readonly string[]): Promise<void> {
    return this.deleteAll('clientGrant', { siteId }, 'clientId', clientIds);
  }

  addGrants(rows: readonly Insertable<Tables['clientGrant']>[]): Promise<void> {
    return this.insertAll('clientGrant', rows);
  }

  removeGrant(siteId: string, clientId: string, resource: string): Promise<boolean> {
    return this.delete('clientGrant', { siteId, clientId, resource });
  }
}
