import type { Insertable } from 'kysely';
import type { RowOf } from './records.ts';
import { Repository } from './repository.ts';
import type { Tables } from './tables.ts';

/** Published documents: the steps of each chain, files of whole bundles, freshness statements. */
export class Distribution extends Repository {
  addStep(row: Insertable<Tables['bundleStep']>): Promise<void> {
    return this.insert('bundleStep', row);
  }

  step(siteId: string, revision: number): Promise<RowOf<'bundleStep'> | undefined> {
    return this.row('bundleStep', { siteId, revision });
  }

  /** Steps after a revision, in order. */
  stepsAfter(siteId: string, revision: number, limit: number): Promise<readonly RowOf<'bundleStep'>[]> {
    return this.db
      .selectFrom('bundleStep')
      .selectAll()
      .where('siteId', '=', siteId)
      .where('revision', '>', revision)
      .orderBy('revision')
      .limit(limit)
      .execute();
  }

  /** Number and total bytes of the steps after a revision. */
  async sizeAfter(
    siteId: string,
    revision: number,
  ): Promise<{ readonly steps: number; readonly bytes: number }> {
    const row = await this.db
      .selectFrom('bundleStep')
      .select((of) => [of.fn.countAll<number>().as('steps'), of.fn.sum<number | null>('bytes').as('bytes')])
      .where('siteId', '=', siteId)
      .where('revision', '>', revision)
      .executeTakeFirstOrThrow();
    return { steps: Number(row.steps), bytes: Number(row.bytes ?? 0) };
  }

  async pruneSteps(siteId: string, beforeRevision: number): Promise<void> {
    await this.db
      .deleteFrom('bundleStep')
      .where('siteId', '=', siteId)
      .where('revision', '<', beforeRevision)
      .execute();
  }

  addFile(row: Insertable<Tables['bundleFile']>): Promise<void> {
    return this.insert('bundleFile', row);
  }

  files(siteId: string, revision: number): Promise<readonly RowOf<'bundleFile'>[]> {
    return this.rows('bundleFile', { siteId, revision }, 'name');
  }

  async putBlob(row: Insertable<Tables['bundleBlob']>): Promise<void> {
    await this.db
      .insertInto('bundleBlob')
      .values(row)
      .onConflict((conflict) => conflict.columns(['siteId', 'sha256']).doNothing())
      .execute();
  }

  async blob(siteId: string, sha256: string): Promise<Buffer | undefined> {
    const row = await this.db
      .selectFrom('bundleBlob')
      .select('content')
      .where('siteId', '=', siteId)
      .where('sha256', '=', sha256)
      .executeTakeFirst();
    return row && Buffer.from(row.content);
  }

  hasBlob(siteId: string, sha256: string): Promise<boolean> {
    return this.has('bundleBlob', { siteId, sha256 });
  }

  /** Removes files of bundles before a revision, and contents that no bundle refers to any more. */
  async pruneFiles(siteId: string, beforeRevision: number): Promise<void> {
    await this.db
      .deleteFrom('bundleFile')
      .where('siteId', '=', siteId)
      .where('revision', '<', beforeRevision)
      .execute();
    await this.db
      .deleteFrom('bundleBlob')
      .where('siteId', '=', siteId)
      .where('sha256', 'not in', (of) =>
        of.selectFrom('bundleFile').select('sha256').where('siteId', '=', siteId),
      )
      .execute();
  }

  freshness(siteId: string): Promise<RowOf<'freshness'> | undefined> {
    return this.row('freshness', { siteId });
  }

  async putFreshness(row: Insertable<Tables['freshness']>): Promise<void> {
    const { siteId: _, ...rest } = row;
    await this.db
      .insertInto('freshness')
      .values(row)
      .onConflict((conflict) => conflict.column('siteId').doUpdateSet(rest))
      .execute();
  }
}
