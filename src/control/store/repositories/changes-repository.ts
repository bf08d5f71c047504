import type { Insertable } from 'kysely';
import type { RowOf } from './records.ts';
import { Repository } from './repository.ts';
import type { Database, Tables } from './tables.ts';

export type Change =
  | { readonly kind: 'client'; readonly clientId: string }
  | { readonly kind: 'key'; readonly keyId: string }
  /** Any other content of a bundle: requests a whole bundle. */
  | { readonly kind: 'policy' };

/** Unpublished changes of a site, written at the end of the transaction that makes the change. */
export class SiteChanges extends Repository {
  readonly #holdSite: (siteId: string) => Promise<void>;
  /** By site, kind and reference: a transaction records a change once. */
  readonly #recorded = new Map<string, Insertable<Tables['siteChange']>>();

  constructor(db: Database, holdSite: (siteId: string) => Promise<void>) {
    super(db);
    this.#holdSite = holdSite;
  }

  /** The caller must also call `tx.notify({ topic: 'site_changed', reference: siteId })`. */
  async record(siteId: string, change: Change, nowMs: number): Promise<void> {
    const reference = change.kind === 'client' ? change.clientId : change.kind === 'key' ? change.keyId : '';
    const name = [siteId, change.kind, reference].join(' ');
    if (this.#recorded.has(name)) return;
    this.#recorded.set(name, { siteId, kind: change.kind, reference, createdAtMs: nowMs });
  }

  /** Writes the recorded changes. The store calls it before the commit. */
  async flush(): Promise<void> {
    const rows = [...this.#recorded.values()];
    this.#recorded.clear();
    // Sequence numbers are assigned before the commit. The lock prevents a change from appearing below a settled number.
    for (const siteId of new Set(rows.map((row) => row.siteId))) await this.#holdSite(siteId);
    await this.insertAll('siteChange', rows);
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

  /** Changes of anything but keys after a sequence number, in their order. */
  contentAfter(
    siteId: string,
    seq: number,
  ): Promise<readonly Pick<RowOf<'siteChange'>, 'kind' | 'reference' | 'seq'>[]> {
    return this.db
      .selectFrom('siteChange')
      .select(['kind', 'reference', 'seq'])
      .where('siteId', '=', siteId)
      .where('seq', '>', seq)
      .where('kind', 'in', ['policy', 'client'])
      .orderBy('seq')
      .execute();
  }

  /** 0 without unpublished changes. */
  async newestSeq(siteId: string): Promise<number> {
    const query = this.db.selectFrom('siteChange').select('seq').where('siteId', '=', siteId);
    return (await query.orderBy('seq', 'desc').limit(1).executeTakeFirst())?.seq ?? 0;
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
