import { sql } from 'kysely';
import { inParts, PRUNED_AT_ONCE, type RowOf } from './records.ts';
import { Repository } from './repository.ts';

type Row = RowOf<'decisionSummary'>;

/** A period of a site's rows with one span. */
export interface SummaryPeriod {
  readonly siteId: string;
  readonly spanSeconds: number;
  /** Inclusive, and exclusive. */
  readonly fromSeconds: number;
  readonly untilSeconds: number;
}

/** Sums of the targets of a site. */
export type SummaryTotals = Pick<Row, 'startSeconds' | 'allowed' | 'denied' | 'observed' | 'dropped'> & {
  readonly targets: number;
};

/** Counts of decisions as targets reported them: one row a target and minute, and one a target and hour. */
export class DecisionSummaries extends Repository {
  /** Attached ones among the targets. */
  async attached(targetIds: readonly string[]): Promise<ReadonlySet<string>> {
    const found = new Set<string>();
    for (const ids of inParts(targetIds)) {
      const rows = await this.db
        .selectFrom('target')
        .select('id')
        .where('id', 'in', ids)
        .where('state', '=', 'attached')
        .execute();
      for (const { id } of rows) found.add(id);
    }
    return found;
  }

  /** Those of the routes that the site has. */
  async routesAmong(siteId: string, routeIds: readonly string[]): Promise<ReadonlySet<string>> {
    const found = new Set<string>();
    for (const ids of inParts(routeIds)) {
      const rows = await this.db
        .selectFrom('route')
        .select('routeId')
        .where('siteId', '=', siteId)
        .where('routeId', 'in', ids)
        .execute();
      for (const { routeId } of rows) found.add(routeId);
    }
    return found;
  }

  find(targetId: string, spanSeconds: number, startSeconds: number): Promise<Row | undefined> {
    return this.row('decisionSummary', { spanSeconds, startSeconds, targetId });
  }

  async put(rows: readonly Row[]): Promise<void> {
    await this.putAll('decisionSummary', ['spanSeconds', 'startSeconds', 'targetId'], rows);
  }

  /** Of each start with a row. Reads only an index. */
  async totals(period: SummaryPeriod): Promise<readonly SummaryTotals[]> {
    const rows = await this.#within(period)
      .select((of) => [
        'startSeconds',
        of.fn.sum<number>('allowed').as('allowed'),
        of.fn.sum<number>('denied').as('denied'),
        of.fn.sum<number>('observed').as('observed'),
        of.fn.sum<number>('dropped').as('dropped'),
        of.fn.countAll<number>().as('targets'),
      ])
      .groupBy('startSeconds')
      .orderBy('startSeconds')
      .execute();
    return rows.map((row) => ({
      startSeconds: Number(row.startSeconds),
      allowed: Number(row.allowed),
      denied: Number(row.denied),
      observed: Number(row.observed),
      dropped: Number(row.dropped),
      targets: Number(row.targets),
    }));
  }

  /** Rows in order, at most `limit`, after the last one of the part before. */
  rowsWithin(
    period: SummaryPeriod,
    after: Pick<Row, 'startSeconds' | 'targetId'> | undefined,
    limit: number,
  ): Promise<readonly Row[]> {
    let query = this.#within(period).selectAll();
    if (after !== undefined) {
      query = query.where(
        sql<boolean>`(start_seconds, target_id) > (${after.startSeconds}, ${after.targetId})`,
      );
    }
    return query.orderBy('startSeconds').orderBy('targetId').limit(limit).execute();
  }

  /** @returns how many rows it removed, at most {@link PRUNED_AT_ONCE} */
  async prune(spanSeconds: number, beforeSeconds: number): Promise<number> {
    const { numAffectedRows = 0n } = await sql`delete from decision_summary
      where (span_seconds, start_seconds, target_id) in (select span_seconds, start_seconds, target_id from decision_summary
        where span_seconds = ${spanSeconds} and start_seconds < ${beforeSeconds} limit ${sql.lit(PRUNED_AT_ONCE)})`.execute(
      this.db,
    );
    return Number(numAffectedRows);
  }

  #within({ siteId, spanSeconds, fromSeconds, untilSeconds }: SummaryPeriod) {
    return this.db
      .selectFrom('decisionSummary')
      .where('siteId', '=', siteId)
      .where('spanSeconds', '=', spanSeconds)
      .where('startSeconds', '>=', fromSeconds)
      .where('startSeconds', '<', untilSeconds);
  }
}
