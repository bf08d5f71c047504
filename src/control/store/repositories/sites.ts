import type { Insertable } from 'kysely';
import { newId } from '../../domain/identifiers.ts';
import type { Database } from '../database.ts';
import type { Tables } from '../tables.ts';
import { VersionedTable } from './versioned-table.ts';

/** Tables with a site's data, ordered so that deletion never breaks a reference. */
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

/** Auth Sites. */
export class Sites extends VersionedTable<'site'> {
  constructor(db: Database) {
    super(db, 'site');
  }

  override add(row: Omit<Insertable<Tables['site']>, 'uid'>): Promise<void> {
    return super.add({ ...row, uid: newId('siteUid', row.createdAtMs) });
  }

  /** Also removes everything that belongs to the site, except the audit trail and revoked public keys. */
  override async remove(id: string): Promise<boolean> {
    await this.db
      .deleteFrom('keySet')
      .where('sourceId', 'in', (of) => of.selectFrom('source').select('id').where('siteId', '=', id))
      .execute();
    for (const table of OF_SITE) await this.db.deleteFrom(table).where('siteId', '=', id).execute();
    return super.remove(id);
  }
}
