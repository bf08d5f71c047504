import type { Database } from '../database.ts';
import type { RowOf } from './records.ts';

export type Change =
  | { readonly kind: 'client'; readonly clientId: string }
  | { readonly kind: 'key'; readonly keyId: string }
  /** Anything else that a bundle holds: asks for a whole one. */
  | { readonly kind: 'policy' };

/** What was changed in a site and is not published yet. Written in the transaction that makes the change. */
export class SiteChanges {
  readonly #db: Database;

  readonly #holdSite: (siteId: string) => Promise<void>;

  constructor(db: Database, holdSite: (siteId: string) => Promise<void>) {
    this.#db = db;
    this.#holdSite = holdSite;
  }

  /** Whoever calls this also calls `tx.notify({ topic: 'site_changed', reference: siteId })`. */
  async record(siteId: string, change: Change, nowMs: number): Promise<void> {
    // Numbers are given out before the commit. Under the lock a change cannot appear below one that is settled already.
    await this.#holdSite(siteId);
    const reference = change.kind === 'client' ? change.clientId : change.kind === 'key' ? change.keyId : '';
    await this.#db
      .insertInto('siteChange')
      .values({ siteId, kind: change.kind, reference, createdAtMs: nowMs })
      .execute();
  }

  /** In the order of the changes. */
  pending(siteId: string, limit: number): Promise<readonly RowOf<'siteChange'>[]> {
    return this.#db
      .selectFrom('siteChange')
      .selectAll()
      .where('siteId', '=', siteId)
      .orderBy('seq')
      .limit(limit)
      .execute();
  }

  /** Moment of the oldest change that is not published, milliseconds. */
  async oldestPendingMs(siteId: string): Promise<number | undefined> {
    const row = await this.#db
      .selectFrom('siteChange')
      .select('createdAtMs')
      .where('siteId', '=', siteId)
      .orderBy('seq')
      .limit(1)
      .executeTakeFirst();
    return row?.createdAtMs;
  }

  /** Takes out what is published now. */
  async settle(siteId: string, upToSeq: number): Promise<void> {
    await this.#db
      .deleteFrom('siteChange')
      .where('siteId', '=', siteId)
      .where('seq', '<=', upToSeq)
      .execute();
  }

  async sitesWithChanges(): Promise<readonly string[]> {
    const rows = await this.#db.selectFrom('siteChange').select('siteId').distinct().execute();
    return rows.map(({ siteId }) => siteId);
  }
}
