import type { Insertable } from 'kysely';
import type { Page, RowOf } from './records.ts';
import { Repository } from './repository.ts';
import type { Tables } from './tables.ts';

/** Callers that a site's bundles deny. */
export class BlockedCallers extends Repository {
  add(row: Insertable<Tables['blockedCaller']>): Promise<void> {
    return this.insert('blockedCaller', row);
  }

  isBlocked(siteId: string, name: string): Promise<boolean> {
    return this.has('blockedCaller', { siteId, name });
  }

  /** @returns whether it was blocked */
  remove(siteId: string, name: string): Promise<boolean> {
    return this.delete('blockedCaller', { siteId, name });
  }

  count(siteId: string): Promise<number> {
    return this.countRows('blockedCaller', { siteId });
  }

  list(siteId: string, page: Page): Promise<readonly RowOf<'blockedCaller'>[]> {
    return this.page('blockedCaller', { siteId }, 'name', page);
  }

  /** Whether the site has blocked callers that no bundle lists yet. */
  async isWithheld(siteId: string): Promise<boolean> {
    return (
      (await this.has('site', { id: siteId, blockedPublished: 0 })) && this.has('blockedCaller', { siteId })
    );
  }

  /** Sites with blocked callers that no bundle lists yet. */
  async withholdingSites(): Promise<readonly string[]> {
    const rows = await this.db
      .selectFrom('blockedCaller')
      .innerJoin('site', 'site.id', 'blockedCaller.siteId')
      .select('site.id')
      .where('site.blockedPublished', '=', 0)
      .distinct()
      .execute();
    return rows.map(({ id }) => id);
  }
}
