import type { Updateable } from 'kysely';
import type { RowOf } from './records.ts';
import type { Tables } from './tables.ts';
import { VersionedTable } from './versioned-table.ts';

export class OAuthIssuerTable extends VersionedTable<'oauthIssuer'> {
  /** Those whose last fetch did not begin after `sinceMs`, or began after `nowMs`, by a clock that was set back. */
  due(sinceMs: number, nowMs: number): Promise<readonly RowOf<'oauthIssuer'>[]> {
    return this.db
      .selectFrom('oauthIssuer')
      .selectAll()
      .where((is) =>
        is.or([
          is('attemptedAtMs', 'is', null),
          is('attemptedAtMs', '<=', sinceMs),
          is('attemptedAtMs', '>', nowMs),
        ]),
      )
      .execute();
  }

  /** Brings the next fetch of a server forward, once: not again until that fetch has ended. @param byMs less than the interval of fetches */
  async bringForward(siteId: string, issuer: string, byMs: number, nowMs: number): Promise<void> {
    await this.db
      .updateTable('oauthIssuer')
      .set((of) => ({ attemptedAtMs: of('attemptedAtMs', '-', byMs) }))
      .where('siteId', '=', siteId)
      .where('issuer', '=', issuer)
      .where('attemptedAtMs', '>', nowMs - byMs)
      .execute();
  }

  /** Those with keys. */
  keyed(): Promise<readonly RowOf<'oauthIssuer'>[]> {
    return this.db.selectFrom('oauthIssuer').selectAll().where('keys', 'is not', null).execute();
  }

  /** Sites, with the time of the last successful fetch, or of the change without one, that is longest ago. */
  async oldestFetches(): Promise<readonly { readonly siteId: string; readonly fetchedAtMs: number }[]> {
    const rows = await this.db
      .selectFrom('oauthIssuer')
      .select((of) => [
        'siteId',
        of.fn.min<number>(of.fn.coalesce('fetchedAtMs', 'updatedAtMs')).as('fetchedAtMs'),
      ])
      .groupBy('siteId')
      .execute();
    return rows.map(({ siteId, fetchedAtMs }) => ({ siteId, fetchedAtMs: Number(fetchedAtMs) }));
  }

  /** Notes a fetch, which makes no new version: operators change other columns. */
  async noteFetch(
    { siteId, issuer }: Pick<RowOf<'oauthIssuer'>, 'siteId' | 'issuer'>,
    set: Pick<Updateable<Tables['oauthIssuer']>, 'keys' | 'fetchedAtMs' | 'attemptedAtMs' | 'failureCode'>,
  ): Promise<void> {
    await this.update('oauthIssuer', { siteId, issuer }, set);
  }
}
