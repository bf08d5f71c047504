import type { Database } from '../tables.ts';
import type { RowOf } from './records.ts';
import { Repository } from './repository.ts';

export type Change =
  | { readonly kind: 'client'; readonly clientId: string }
  | { readonly kind: 'key'; readonly keyId: string }
  /** Any other content of a bundle: requests a whole bundle. */
  | { readonly kind: 'policy' };

/** Unpublished changes of a site, written in the transaction that makes the change. */
export class SiteChanges extends Repository {
  readonly #holdSite: (siteId: string) => Promise<void>;

  constructor(db: Database, holdSite: (siteId: string) => Promise<void>) {
    super(db);
    this.#holdSite = holdSite;
  }

  /** The caller must also call `tx.notify({ topic: 'site_changed', reference: siteId })`. */
  async record(siteId: string, change: Change, nowMs: number): Promise<void> {
    // Sequence numbers are assigned before the commit. The lock prevents a change from appearing below a settled number.
    await this.#holdSite(siteId);
    const reference = change.kind === 'client' ? change.clientId : change.kind === 'key' ? change.keyId : '';
    await this.db
      .insertInto('siteChange')
      .values({ siteId, kind: change.kind, reference, createdAtMs: nowMs })
      .execute();
  }

  /** In the order of the changes. */
  pending(siteId: string, limit: number): Promise<readonly RowOf<'siteChange'>[]> {
    return this.db
      .selectFrom('siteChange')
      .selectAll()
      .where('siteId', '=', siteId)
      .orderBy('seq')
      .limit(limit)
      .execute();
  }

  /** Time of the oldest unpublished change, milliseconds. */
  async oldestPendingMs(siteId: string): Promise<number | undefined> {
    const row = await this.db
      .selectFrom('siteChange')
      .select('createdAtMs')
      .where('siteId', '=', siteId)
      .orderBy('seq')
      .limit(1)
      .executeTakeFirst();
    return row?.createdAtMs;
  }

  /** Removes published changes. */
  async settle(siteId: string, upToSeq: number): Promise<void> {
    await this.db.deleteFrom('siteChange').where('siteId', '=', siteId).where('seq', '<=', upToSeq).execute();
  }

  async sitesWithChanges(): Promise<readonly string[]> {
    const rows = await this.db.selectFrom('siteChange').select('siteId').distinct().execute();
    return rows.map(({ siteId }) => siteId);
  }
}
