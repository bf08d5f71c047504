import type { Insertable, Updateable } from 'kysely';
import type { SourceState } from '../../contract/vocabulary.ts';
import { MAX_KEY_SET_LEAD_MS } from '../../domain/source-states.ts';
import type { RowOf } from './records.ts';
import type { Tables } from './tables.ts';
import { VersionedTable } from './versioned-table.ts';

/** Trust Anchor Sources, their revisions and key sets. */
export class Sources extends VersionedTable<'source'> {
  /** Oldest first. */
  revisions(sourceId: string): Promise<readonly RowOf<'sourceRevision'>[]> {
    return this.rows('sourceRevision', { sourceId }, 'revision');
  }

  /** Revisions of a site in any of these states. */
  inStates(siteId: string, states: readonly SourceState[]): Promise<readonly RowOf<'sourceRevision'>[]> {
    return this.db
      .selectFrom('sourceRevision')
      .selectAll()
      .where('siteId', '=', siteId)
      .where('state', 'in', [...states])
      .orderBy('sourceId')
      .orderBy('revision')
      .execute();
  }

  /** Revisions in any of these states on all sites, for background jobs. */
  everywhereInStates(states: readonly SourceState[]): Promise<readonly RowOf<'sourceRevision'>[]> {
    return this.db
      .selectFrom('sourceRevision')
      .selectAll()
      .where('state', 'in', [...states])
      .execute();
  }

  async ownerOfAudience(audience: string): Promise<string | undefined> {
    const row = await this.db
      .selectFrom('audience')
      .select('siteId')
      .where('audience', '=', audience)
      .executeTakeFirst();
    return row?.siteId;
  }

  /** The first claim wins; does nothing when the audience is taken. */
  async claimAudience(audience: string, siteId: string): Promise<void> {
    await this.db
      .insertInto('audience')
      .values({ audience, siteId })
      .onConflict((conflict) => conflict.column('audience').doNothing())
      .execute();
  }

  keySet(sourceId: string, revision: number): Promise<RowOf<'keySet'> | undefined> {
    return this.row('keySet', { sourceId, revision });
  }

  /** Keeps the later fetched key set of a revision, unless the stored one has a timestamp from a clock that was ahead. */
  async putKeySet(row: Insertable<Tables['keySet']>): Promise<void> {
    await this.db
      .insertInto('keySet')
      .values(row)
      .onConflict((conflict) =>
        conflict
          .columns(['sourceId', 'revision'])
          .doUpdateSet({ jwks: row.jwks, fetchedAtMs: row.fetchedAtMs })
          .where((is) =>
            is.or([
              is('keySet.fetchedAtMs', '<=', row.fetchedAtMs),
              is('keySet.fetchedAtMs', '>', row.fetchedAtMs + MAX_KEY_SET_LEAD_MS),
            ]),
          ),
      )
      .execute();
  }

  /** Does nothing when the revision has no key set. */
  async noteFailedFetch(
    sourceId: string,
    revision: number,
    failure: Pick<Updateable<Tables['keySet']>, 'failedAtMs' | 'failureCode'>,
  ): Promise<void> {
    await this.update('keySet', { sourceId, revision }, failure);
  }

  async removeKeySet(sourceId: string, revision: number): Promise<void> {
    await this.delete('keySet', { sourceId, revision });
  }
}
