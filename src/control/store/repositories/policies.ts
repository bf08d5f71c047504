import type { Insertable, Updateable } from 'kysely';
import type { Database } from '../database.ts';
import type { Tables } from '../tables.ts';
import { expectUpdated, type Page, type RowOf } from './records.ts';

/** Of one policy. */
export interface LastEnd {
  readonly siteId: string;
  readonly maxKeyLifetimeSeconds: number;
  readonly lastEndSeconds: number;
}

/** Enrollment policies. */
export class Policies {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  async add(row: Insertable<Tables['enrollmentPolicy']>): Promise<void> {
    await this.#db.insertInto('enrollmentPolicy').values(row).execute();
  }

  policy(id: string): Promise<RowOf<'enrollmentPolicy'> | undefined> {
    return this.#db.selectFrom('enrollmentPolicy').selectAll().where('id', '=', id).executeTakeFirst();
  }

  byReference(reference: string): Promise<RowOf<'enrollmentPolicy'> | undefined> {
    return this.#db
      .selectFrom('enrollmentPolicy')
      .selectAll()
      .where('reference', '=', reference)
      .executeTakeFirst();
  }

  /** Writes over exactly the version that was read. @throws VersionConflictError */
  async change(
    row: Pick<RowOf<'enrollmentPolicy'>, 'id' | 'version'>,
    set: Updateable<Tables['enrollmentPolicy']>,
    nowMs: number,
  ): Promise<void> {
    const next = { ...set, version: row.version + 1, updatedAtMs: nowMs };
    expectUpdated(
      await this.#db
        .updateTable('enrollmentPolicy')
        .set(next)
        .where('id', '=', row.id)
        .where('version', '=', row.version)
        .executeTakeFirstOrThrow(),
    );
  }

  /**
   * When the last key of each active policy ends or has ended, and how long its keys live at most. One lookup for each, however many
   * keys there are; a policy whose keys were all pruned or revoked is passed over.
   */
  async lastEnds(): Promise<readonly LastEnd[]> {
    const rows = await this.#db
      .selectFrom('enrollmentPolicy')
      .select(['siteId', 'maxKeyLifetimeSeconds'])
      .select((of) =>
        of
          .selectFrom('derivedKey')
          .select(({ fn }) => fn.max('expiresAtSeconds').as('last'))
          .whereRef('derivedKey.policyId', '=', 'enrollmentPolicy.id')
          .where('derivedKey.status', '=', 'active')
          .as('lastEndSeconds'),
      )
      .where('state', '=', 'active')
      .execute();
    return rows.flatMap(({ siteId, maxKeyLifetimeSeconds, lastEndSeconds }) =>
      lastEndSeconds === null
        ? []
        : [{ siteId, maxKeyLifetimeSeconds, lastEndSeconds: Number(lastEndSeconds) }],
    );
  }

  /** Whether a policy that is not deleted names the client. */
  async hasOfClient(siteId: string, clientId: string): Promise<boolean> {
    const row = await this.#db
      .selectFrom('enrollmentPolicy')
      .select('id')
      .where('siteId', '=', siteId)
      .where('clientId', '=', clientId)
      .where('state', '!=', 'deleted')
      .limit(1)
      .executeTakeFirst();
    return row !== undefined;
  }

  /** Without deleted ones. */
  ofSite(siteId: string, page: Page): Promise<readonly RowOf<'enrollmentPolicy'>[]> {
    let query = this.#db
      .selectFrom('enrollmentPolicy')
      .selectAll()
      .where('siteId', '=', siteId)
      .where('state', '!=', 'deleted');
    if (page.after !== undefined) query = query.where('id', '>', page.after);
    return query.orderBy('id').limit(page.limit).execute();
  }

  /** Deleted policies that no enrollment refers to any more. @returns how many */
  async pruneDeleted(): Promise<number> {
    const { numDeletedRows } = await this.#db
      .deleteFrom('enrollmentPolicy')
      .where('state', '=', 'deleted')
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
