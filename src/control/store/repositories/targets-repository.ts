import type { Updateable } from 'kysely';
import { inParts, type RowOf } from './records.ts';
import type { Tables } from './tables.ts';
import { VersionedTable } from './versioned-table.ts';

/** Targets: verifiers that receive a site's bundles. */
export class Targets extends VersionedTable<'target'> {
  /** All attached targets, which publications wait for. */
  attached(siteId: string): Promise<readonly RowOf<'target'>[]> {
    return this.rows('target', { siteId, state: 'attached' }, 'id');
  }

  /** All targets, with detached ones. */
  ofSite(siteId: string): Promise<readonly RowOf<'target'>[]> {
    return this.rows('target', { siteId }, 'id');
  }

  async ofIds(ids: readonly string[]): Promise<readonly RowOf<'target'>[]> {
    const rows: RowOf<'target'>[] = [];
    for (const part of inParts(ids)) {
      rows.push(...(await this.db.selectFrom('target').selectAll().where('id', 'in', part).execute()));
    }
    return rows;
  }

  /** Finds a target by token hash: the current token, or the previous one during the overlap. */
  byTokenHash(tokenHash: string, nowMs: number): Promise<RowOf<'target'> | undefined> {
    return this.db
      .selectFrom('target')
      .selectAll()
      .where('state', '=', 'attached')
      .where((is) =>
        is.or([
          is('tokenHash', '=', tokenHash),
          is.and([is('previousTokenHash', '=', tokenHash), is('previousTokenEndsAtMs', '>', nowMs)]),
        ]),
      )
      .executeTakeFirst();
  }

  /** Records a target's report without a new version. */
  async note(
    id: string,
    set: Pick<
      Updateable<Tables['target']>,
      | 'ackedRevision'
      | 'ackedHead'
      | 'ackedAtMs'
      | 'refusedRevision'
      | 'refusedCode'
      | 'refusedDetail'
      | 'refusedAtMs'
      | 'lastSeenAtMs'
      | 'aheadRevision'
      | 'aheadSinceMs'
      | 'raisedRevisions'
      | 'acceptedProofsLackedAtMs'
      | 'blockedLackedAtMs'
      | 'enforcementLackedAtMs'
      | 'passportHeaderLackedAtMs'
      | 'enforcedObservations'
    >,
  ): Promise<void> {
    await this.update('target', { id }, set);
  }
}
