import type { Insertable, Updateable } from 'kysely';
import { MAX_KEY_SET_LEAD_MS, type SourceState } from '../../domain/source.ts';
import type { Database } from '../database.ts';
import type { Tables } from '../tables.ts';
import { expectUpdated, type Page, type RowOf } from './records.ts';

/** Trust Anchor Sources, their revisions and key sets. */
export class Sources {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  async add(row: Insertable<Tables['source']>): Promise<void> {
    await this.#db.insertInto('source').values(row).execute();
  }

  source(id: string): Promise<RowOf<'source'> | undefined> {
    return this.#db.selectFrom('source').selectAll().where('id', '=', id).executeTakeFirst();
  }

  /** Writes over exactly the version that was read. @throws VersionConflictError */
  async change(
    row: Pick<RowOf<'source'>, 'id' | 'version'>,
    set: Updateable<Tables['source']>,
    nowMs: number,
  ): Promise<void> {
    const next = { ...set, version: row.version + 1, updatedAtMs: nowMs };
    expectUpdated(
      await this.#db
        .updateTable('source')
        .set(next)
        .where('id', '=', row.id)
        .where('version', '=', row.version)
        .executeTakeFirstOrThrow(),
    );
  }

  async remove(id: string): Promise<boolean> {
    const { numDeletedRows } = await this.#db
      .deleteFrom('source')
      .where('id', '=', id)
      .executeTakeFirstOrThrow();
    return numDeletedRows > 0n;
  }

  ofSite(siteId: string, page: Page): Promise<readonly RowOf<'source'>[]> {
    let query = this.#db.selectFrom('source').selectAll().where('siteId', '=', siteId);
    if (page.after !== undefined) query = query.where('id', '>', page.after);
    return query.orderBy('id').limit(page.limit).execute();
  }

  async addRevision(row: Insertable<Tables['sourceRevision']>): Promise<void> {
    await this.#db.insertInto('sourceRevision').values(row).execute();
  }

  revision(sourceId: string, revision: number): Promise<RowOf<'sourceRevision'> | undefined> {
    return this.#db
      .selectFrom('sourceRevision')
      .selectAll()
      .where('sourceId', '=', sourceId)
      .where('revision', '=', revision)
      .executeTakeFirst();
  }

  /** Writes over exactly the version that was read. @throws VersionConflictError */
  async changeRevision(
    row: Pick<RowOf<'sourceRevision'>, 'sourceId' | 'revision' | 'version'>,
    set: Updateable<Tables['sourceRevision']>,
    nowMs: number,
  ): Promise<void> {
    const next = { ...set, version: row.version + 1, updatedAtMs: nowMs };
    expectUpdated(
      await this.#db
        .updateTable('sourceRevision')
        .set(next)
        .where('sourceId', '=', row.sourceId)
        .where('revision', '=', row.revision)
        .where('version', '=', row.version)
        .executeTakeFirstOrThrow(),
    );
  }

  async removeRevision(sourceId: string, revision: number): Promise<boolean> {
    const { numDeletedRows } = await this.#db
      .deleteFrom('sourceRevision')
      .where('sourceId', '=', sourceId)
      .where('revision', '=', revision)
      .executeTakeFirstOrThrow();
    return numDeletedRows > 0n;
  }

  /** Oldest first. */
  revisions(sourceId: string): Promise<readonly RowOf<'sourceRevision'>[]> {
    return this.#db
      .selectFrom('sourceRevision')
      .selectAll()
      .where('sourceId', '=', sourceId)
      .orderBy('revision')
      .execute();
  }

  /** Revisions of a site in any of these states. */
  inStates(siteId: string, states: readonly SourceState[]): Promise<readonly RowOf<'sourceRevision'>[]> {
    return this.#db
      .selectFrom('sourceRevision')
      .selectAll()
      .where('siteId', '=', siteId)
      .where('state', 'in', [...states])
      .orderBy('sourceId')
      .orderBy('revision')
      .execute();
  }

  /** The same on every site: for background jobs. */
  everywhereInStates(states: readonly SourceState[]): Promise<readonly RowOf<'sourceRevision'>[]> {
    return this.#db
      .selectFrom('sourceRevision')
      .selectAll()
      .where('state', 'in', [...states])
      .execute();
  }

  async ownerOfAudience(audience: string): Promise<string | undefined> {
    const row = await this.#db
      .selectFrom('audience')
      .select('siteId')
      .where('audience', '=', audience)
      .executeTakeFirst();
    return row?.siteId;
  }

  /** First come, first served; nothing happens when somebody has it. */
  async claimAudience(audience: string, siteId: string): Promise<void> {
    await this.#db
      .insertInto('audience')
      .values({ audience, siteId })
      .onConflict((conflict) => conflict.column('audience').doNothing())
      .execute();
  }

  keySet(sourceId: string, revision: number): Promise<RowOf<'keySet'> | undefined> {
    return this.#db
      .selectFrom('keySet')
      .selectAll()
      .where('sourceId', '=', sourceId)
      .where('revision', '=', revision)
      .executeTakeFirst();
  }

  /** Of two key sets of a revision, the one that was fetched later stays, unless a clock was ahead when it was. */
  async putKeySet(row: Insertable<Tables['keySet']>): Promise<void> {
    await this.#db
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

  async removeKeySet(sourceId: string, revision: number): Promise<void> {
    await this.#db
      .deleteFrom('keySet')
      .where('sourceId', '=', sourceId)
      .where('revision', '=', revision)
      .execute();
  }
}
