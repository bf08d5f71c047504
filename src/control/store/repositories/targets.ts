import type { Insertable, Updateable } from 'kysely';
import type { Database } from '../database.ts';
import type { Tables } from '../tables.ts';
import { expectUpdated, type Page, type RowOf } from './records.ts';

/** Verifiers that take a site's bundles. */
export class Targets {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  async add(row: Insertable<Tables['target']>): Promise<void> {
    await this.#db.insertInto('target').values(row).execute();
  }

  target(id: string): Promise<RowOf<'target'> | undefined> {
    return this.#db.selectFrom('target').selectAll().where('id', '=', id).executeTakeFirst();
  }

  /** Writes over exactly the version that was read. @throws VersionConflictError */
  async change(
    row: Pick<RowOf<'target'>, 'id' | 'version'>,
    set: Updateable<Tables['target']>,
    nowMs: number,
  ): Promise<void> {
    const next = { ...set, version: row.version + 1, updatedAtMs: nowMs };
    expectUpdated(
      await this.#db
        .updateTable('target')
        .set(next)
        .where('id', '=', row.id)
        .where('version', '=', row.version)
        .executeTakeFirstOrThrow(),
    );
  }

  ofSite(siteId: string, page: Page): Promise<readonly RowOf<'target'>[]> {
    let query = this.#db.selectFrom('target').selectAll().where('siteId', '=', siteId);
    if (page.after !== undefined) query = query.where('id', '>', page.after);
    return query.orderBy('id').limit(page.limit).execute();
  }

  /** All that a publication waits for. */
  attached(siteId: string): Promise<readonly RowOf<'target'>[]> {
    return this.#db
      .selectFrom('target')
      .selectAll()
      .where('siteId', '=', siteId)
      .where('state', '=', 'attached')
      .orderBy('id')
      .execute();
  }

  /** Whose token this is, by its hash: the present one, or the one before for a while. */
  byTokenHash(tokenHash: string, nowMs: number): Promise<RowOf<'target'> | undefined> {
    return this.#db
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

  /** What a target says of itself makes no new version of it. */
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
    >,
  ): Promise<void> {
    await this.#db.updateTable('target').set(set).where('id', '=', id).execute();
  }
}
