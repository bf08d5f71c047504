import type { Page, RowOf } from './records.ts';
import { VersionedTable } from './versioned-table.ts';

/** The key of a policy that ends last. */
export interface LastKey {
  readonly siteId: string;
  readonly createdAtMs: number;
  readonly expiresAtSeconds: number;
}

/** Enrollment policies. */
export class Policies extends VersionedTable<'enrollmentPolicy'> {
  byReference(reference: string): Promise<RowOf<'enrollmentPolicy'> | undefined> {
    return this.row('enrollmentPolicy', { reference });
  }

  /**
   * For each active policy of a site, or of all sites, its active key with the latest end; among equals, the youngest. Policies without such a key are
   * left out. Each lookup uses an index, however many keys there are.
   */
  async lastKeys(siteId?: string): Promise<readonly LastKey[]> {
    let query = this.db
      .selectFrom('enrollmentPolicy')
      .select('siteId')
      .select((of) => {
        const last = of
          .selectFrom('derivedKey')
          .whereRef('derivedKey.policyId', '=', 'enrollmentPolicy.id')
          .where('derivedKey.status', '=', 'active')
          .orderBy('derivedKey.expiresAtSeconds', 'desc')
          .orderBy('derivedKey.createdAtMs', 'desc')
          .limit(1);
        return [
          last.select('derivedKey.createdAtMs').as('createdAtMs'),
          last.select('derivedKey.expiresAtSeconds').as('expiresAtSeconds'),
        ];
      })
      .where('state', '=', 'active');
    if (siteId !== undefined) query = query.where('siteId', '=', siteId);
    const rows = await query.execute();
    return rows.flatMap(({ siteId, createdAtMs, expiresAtSeconds }) =>
      createdAtMs === null || expiresAtSeconds === null
        ? []
        : [{ siteId, createdAtMs: Number(createdAtMs), expiresAtSeconds: Number(expiresAtSeconds) }],
    );
  }

  /** Policies that change when the revision becomes active: waiting for it, or declared to move to it. */
  waitingFor(sourceId: string, revision: number): Promise<readonly RowOf<'enrollmentPolicy'>[]> {
    return this.db
      .selectFrom('enrollmentPolicy')
      .selectAll()
      .where('sourceId', '=', sourceId)
      .where('state', '!=', 'deleted')
      .where((is) =>
        is.or([
          is.and([is('state', '=', 'waiting'), is('sourceRevision', '=', revision)]),
          is('nextSourceRevision', '=', revision),
        ]),
      )
      .orderBy('id')
      .execute();
  }

  /** Removes the planned move of policies to a revision, because it is deleted. */
  async forgetNext(sourceId: string, revision: number): Promise<void> {
    await this.db
      .updateTable('enrollmentPolicy')
      .set({ nextSourceRevision: null })
      .where('sourceId', '=', sourceId)
      .where('nextSourceRevision', '=', revision)
      .execute();
  }

  /** Clients that policies name, without deleted policies. */
  async namedClients(siteId: string): Promise<ReadonlySet<string>> {
    const rows = await this.db
      .selectFrom('enrollmentPolicy')
      .select('clientId')
      .distinct()
      .where('siteId', '=', siteId)
      .where('state', '!=', 'deleted')
      .execute();
    return new Set(rows.map(({ clientId }) => clientId));
  }

  /** Without deleted policies. */
  ofSite(siteId: string, page: Page, displayName?: string): Promise<readonly RowOf<'enrollmentPolicy'>[]> {
    let query = this.db
      .selectFrom('enrollmentPolicy')
      .selectAll()
      .where('siteId', '=', siteId)
      .where('state', '!=', 'deleted');
    if (displayName !== undefined) query = query.where('displayName', '=', displayName);
    if (page.after !== undefined) query = query.where('id', '>', page.after);
    return query.orderBy('id').limit(page.limit).execute();
  }

  /**
   * Removes deleted policies that no enrollment refers to any more.
   * @param sourceId only those of this source
   * @returns how many
   */
  async pruneDeleted(sourceId?: string): Promise<number> {
    let query = this.db.deleteFrom('enrollmentPolicy').where('state', '=', 'deleted');
    if (sourceId !== undefined) query = query.where('sourceId', '=', sourceId);
    const { numDeletedRows } = await query
      .where(({ not, exists, selectFrom }) =>
        not(
          exists(
            selectFrom('enrollment')
              .select('enrollment.id')
              .whereRef('enrollment.policyId', '=', 'enrollmentPolicy.id'),
          ),
        ),
      )
      .executeTakeFirstOrThrow();
    return Number(numDeletedRows);
  }
}
