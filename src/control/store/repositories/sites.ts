import type { Insertable } from 'kysely';
import { newId } from '../../domain/identifiers.ts';
import type { Database } from '../database.ts';
import type { Tables } from '../tables.ts';
import { VersionedTable } from './versioned-table.ts';

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

/** Auth Sites. */
export class Sites extends VersionedTable<'site'> {
  constructor(db: Database) {
    super(db, 'site');
  }

  override add(row: Omit<Insertable<Tables['site']>, 'uid'>): Promise<void> {
    return super.add({ ...row, uid: newId('siteUid', row.createdAtMs) });
  }

  /** With everything that is kept of it, but the audit trail and the public keys that were revoked. */
  override async remove(id: string): Promise<boolean> {
    await this.db
      .deleteFrom('keySet')
      .where('sourceId', 'in', (of) => of.selectFrom('source').select('id').where('siteId', '=', id))
      .execute();
    for (const table of OF_SITE) await this.db.deleteFrom(table).where('siteId', '=', id).execute();
    return super.remove(id);
  }
}
