import type { Insertable } from 'kysely';
import type { EnrollmentState } from '../../contract/vocabulary.ts';
import { type RangedPage, rangedPage } from './ranged-list.ts';
import { type Page, PRUNED_AT_ONCE, type RowOf } from './records.ts';
import type { Tables } from './tables.ts';
import { VersionedTable } from './versioned-table.ts';

export interface EnrollmentFilter {
  readonly state?: EnrollmentState | undefined;
  readonly policyId?: string | undefined;
}

/** Challenges and enrollments. */
export class Enrollments extends VersionedTable<'enrollment'> {
  addChallenge(row: Insertable<Tables['challenge']>): Promise<void> {
    return this.insert('challenge', row);
  }

  challenge(id: string): Promise<RowOf<'challenge'> | undefined> {
    return this.row('challenge', { id });
  }

  /** Consumes a challenge once. @returns whether this call consumed it */
  async consumeChallenge(id: string, enrollmentId: string): Promise<boolean> {
    const { numUpdatedRows } = await this.db
      .updateTable('challenge')
      .set({ enrollmentId })
      .where('id', '=', id)
      .where('enrollmentId', 'is', null)
      .executeTakeFirstOrThrow();
    return numUpdatedRows === 1n;
  }

  /** Removes challenges that ended before this time; enrollments stay. @returns how many, at most {@link PRUNED_AT_ONCE} */
  pruneChallenges(endedBeforeMs: number): Promise<number> {
    return this.pruneBelow('challenge', 'id', 'expiresAtMs', endedBeforeMs);
  }

  byChallenge(challengeId: string): Promise<RowOf<'enrollment'> | undefined> {
    return this.row('enrollment', { challengeId });
  }

  ofSite(
    siteId: string,
    page: Page,
    { policyId, state }: EnrollmentFilter = {},
  ): Promise<RangedPage<RowOf<'enrollment'>>> {
    return rangedPage(this.db, {
      table: 'enrollment',
      orderedBy: 'id',
      direction: 'asc',
      whole: [{ siteId }],
      shortcuts: [
        ...(policyId === undefined ? [] : [{ siteId, policyId }]),
        ...(state === undefined ? [] : [{ siteId, state }]),
      ],
      filter: { policyId, state },
      ...page,
    });
  }

  /** Number of pending enrollments of a site. */
  countPending(siteId: string): Promise<number> {
    return this.countRows('enrollment', { siteId, state: 'pending_approval' });
  }

  /** Pending enrollments of a policy. */
  pendingOfPolicy(policyId: string): Promise<readonly RowOf<'enrollment'>[]> {
    return this.rows('enrollment', { policyId, state: 'pending_approval' }, 'id');
  }

  /** Pending enrollments whose proof was verified against this source, or against one revision of it. */
  pendingOfSource(sourceId: string, revision?: number): Promise<readonly RowOf<'enrollment'>[]> {
    const one = revision === undefined ? {} : { sourceRevision: revision };
    return this.rows('enrollment', { sourceId, ...one, state: 'pending_approval' }, 'id');
  }

  /** Pending enrollments whose key would have ended by now. */
  overdue(nowSeconds: number, limit: number): Promise<readonly RowOf<'enrollment'>[]> {
    return this.db
      .selectFrom('enrollment')
      .selectAll()
      .where('state', '=', 'pending_approval')
      .where('keyExpiresAtSeconds', '<=', nowSeconds)
      .orderBy('keyExpiresAtSeconds')
      .limit(limit)
      .execute();
  }

  /**
   * Removes decided enrollments whose key's actual or planned end is before this time. Prune their challenges first, or a
   * repeated submission would find no enrollment. @returns how many, at most {@link PRUNED_AT_ONCE}
   */
  async prune(endedBeforeSeconds: number): Promise<number> {
    const { numDeletedRows } = await this.db
      .deleteFrom('enrollment')
      .where('id', 'in', (of) =>
        of
          .selectFrom('enrollment')
          .select('id')
          .where('state', 'in', ['issued', 'denied', 'expired'])
          .where('keyExpiresAtSeconds', '<', endedBeforeSeconds)
          .limit(PRUNED_AT_ONCE),
      )
      .executeTakeFirstOrThrow();
    return Number(numDeletedRows);
  }

  /** Number of other public keys that enrolled, or are pending, with this token. */
  async otherKeysOfToken(tokenHash: string, thumbprint: string): Promise<number> {
    const row = await this.db
      .selectFrom('enrollment')
      .select((of) => of.fn.count<number>('thumbprint').distinct().as('keys'))
      .where('tokenHash', '=', tokenHash)
      .where('thumbprint', '!=', thumbprint)
      .where('state', 'in', ['pending_approval', 'issued'])
      .executeTakeFirstOrThrow();
    return Number(row.keys);
  }
}
