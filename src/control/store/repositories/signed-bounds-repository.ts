import type { RowOf } from './records.ts';
import { Repository } from './repository.ts';

/** Until when verifiers may use what was signed. */
export class SignedBounds extends Repository {
  find(siteId: string): Promise<RowOf<'signedBound'> | undefined> {
    return this.row('signedBound', { siteId });
  }

  ofSites(siteIds: readonly string[]): Promise<readonly RowOf<'signedBound'>[]> {
    return this.db.selectFrom('signedBound').selectAll().where('siteId', 'in', siteIds).execute();
  }

  /** Finds the row, and holds it until the end of the transaction. */
  hold(siteId: string): Promise<RowOf<'signedBound'> | undefined> {
    return this.db
      .updateTable('signedBound')
      .set((of) => ({ revision: of.ref('revision') }))
      .where('siteId', '=', siteId)
      .returningAll()
      .executeTakeFirst();
  }

  async addIfNone(row: RowOf<'signedBound'>): Promise<void> {
    await this.db
      .insertInto('signedBound')
      .values(row)
      .onConflict((conflict) => conflict.column('siteId').doNothing())
      .execute();
  }

  put(row: RowOf<'signedBound'>): Promise<void> {
    return this.putAll('signedBound', ['siteId'], [row]);
  }

  ofRevocation(siteId: string, revision: number): Promise<RowOf<'revocationBound'> | undefined> {
    return this.row('revocationBound', { siteId, revision });
  }

  putOfRevocation(row: RowOf<'revocationBound'>): Promise<void> {
    return this.putAll('revocationBound', ['siteId', 'revision'], [row]);
  }
}
