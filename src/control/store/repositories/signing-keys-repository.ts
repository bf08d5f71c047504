import type { Insertable, Updateable } from 'kysely';
import type { Database } from '../database.ts';
import type { Tables } from '../tables.ts';
import type { RowOf } from './records.ts';

/** A site's keys for bundles and freshness statements; the private halves are sealed. */
export class SigningKeys {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  async add(row: Insertable<Tables['signingKey']>): Promise<void> {
    await this.#db.insertInto('signingKey').values(row).execute();
  }

  ofSite(siteId: string): Promise<readonly RowOf<'signingKey'>[]> {
    return this.#db.selectFrom('signingKey').selectAll().where('siteId', '=', siteId).orderBy('id').execute();
  }

  async change(
    id: string,
    set: Pick<Updateable<Tables['signingKey']>, 'state' | 'sealedPrivateKey' | 'retireAtMs'>,
  ): Promise<void> {
    await this.#db.updateTable('signingKey').set(set).where('id', '=', id).execute();
  }
}
