import type { Insertable, Updateable } from 'kysely';
import type { RowOf } from './records.ts';
import { Repository } from './repository.ts';
import type { Tables } from './tables.ts';

/** A site's keys for bundles and freshness statements; the private halves are sealed. */
export class SigningKeys extends Repository {
  add(row: Insertable<Tables['signingKey']>): Promise<void> {
    return this.insert('signingKey', row);
  }

  ofSite(siteId: string): Promise<readonly RowOf<'signingKey'>[]> {
    return this.rows('signingKey', { siteId }, 'id');
  }

  async change(
    id: string,
    set: Pick<Updateable<Tables['signingKey']>, 'state' | 'sealedPrivateKey' | 'retireAtMs'>,
  ): Promise<void> {
    await this.update('signingKey', { id }, set);
  }
}
