/** The decisions of a site over a period, as series for charts: by outcome, reason, route, target, method or latency. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import {
  type DecisionSummary,
  LATENCY_BOUNDS_MS,
  OTHER,
  type OutcomeCounts,
  type SummaryOutcome,
  sumOf,
} from '../../bundle/format/decision-summary.ts';
import { RequestShapeError } from '../../process/http-service/request-shape.ts';
import { type DecisionSeriesView, type DecisionsBy, MAX_SERIES } from '../contract/decisions-contract.ts';
import { momentOf } from '../resource/change.ts';
import type { SummaryPeriod } from '../store/repositories/decision-summaries-repository.ts';
import type { RowOf } from '../store/repositories/records.ts';
import type { Transaction } from '../store/transaction.ts';
import { HOUR_SECONDS, MINUTE_SECONDS, storedSummary, WRITTEN_LATE_SECONDS } from './collected-summaries.ts';
import { DAY_SECONDS, KEPT_SECONDS } from './pruned-summaries.ts';

export interface DecisionsQuery {
  readonly by?: DecisionsBy | undefined;
  readonly step?: 'minute' | 'hour' | undefined;
  readonly from?: string | undefined;
  readonly until?: string | undefined;
  readonly route_id?: string | undefined;
  readonly outcome?: SummaryOutcome | undefined;
}

const DEFAULT_STEPS = 60;
/** Reasons and routes are in the rows themselves, of which a period has many. */
const MAX_READ_MINUTES_SECONDS = 2 * HOUR_SECONDS;
const ROWS_AT_ONCE = 100;

/** A part of a summary that one series counts. */
interface Part {
  readonly name: string;
  readonly outcome?: SummaryOutcome;
  readonly targetId?: string;
  readonly count: number;
}

/** @throws RequestShapeError for a period that is too long */
export async function decisionSeries(
  tx: Transaction,
  siteId: string,
  query: DecisionsQuery,
  nowMs: number,
): Promise<DecisionSeriesView> {
  const { by = 'outcome', step = 'minute', outcome, route_id: routeId } = query;
  const areTotals = by === 'outcome' && routeId === undefined;
  const period = periodOf(siteId, query, areTotals, Math.floor(nowMs / 1000));
  const table = new SeriesTable(period);
  if (areTotals) await addTotals(tx, period, table, outcome);
  else await addRows(tx, period, table, { by, outcome, routeId });
  const { fromSeconds, untilSeconds } = period;
  const { series, ...others } = table.view();
  return {
    ...{ site_id: siteId, by, step },
    from: momentOf(fromSeconds * 1000),
    until: momentOf(untilSeconds * 1000),
    ...others,
    series: by === 'target' ? await withNames(tx, series) : series,
  };
}

async function withNames(
  tx: Transaction,
  series: DecisionSeriesView['series'],
): Promise<DecisionSeriesView['series']> {
  const named: DecisionSeriesView['series'] = [];
  for (const one of series) {
    const target = one.target_id === undefined ? undefined : await tx.targets.find(one.target_id);
    named.push({ ...one, name: target?.name ?? one.name });
  }
  return named;
}

/** Whole steps. */
function periodOf(
  siteId: string,
  { from, step = 'minute', until }: DecisionsQuery,
  areTotals: boolean,
  nowSeconds: number,
): SummaryPeriod {
  const spanSeconds = step === 'minute' ? MINUTE_SECONDS : HOUR_SECONDS;
  const endSeconds =
    until === undefined ? lastKnownSeconds(nowSeconds, spanSeconds) : Date.parse(until) / 1000;
  const untilSeconds = Math.ceil(endSeconds / spanSeconds) * spanSeconds;
  const startSeconds =
    from === undefined ? untilSeconds - DEFAULT_STEPS * spanSeconds : Date.parse(from) / 1000;
  const fromSeconds = Math.floor(startSeconds / spanSeconds) * spanSeconds;
  const isByMinuteOfRows = step === 'minute' && !areTotals;
  const maxSeconds = isByMinuteOfRows ? MAX_READ_MINUTES_SECONDS : KEPT_SECONDS[step];
  // One more, because neither end has to be that of a step.
  if (!(fromSeconds < untilSeconds && untilSeconds - fromSeconds <= maxSeconds + spanSeconds)) {
    const most =
      maxSeconds < DAY_SECONDS ? `${maxSeconds / HOUR_SECONDS} hours` : `${maxSeconds / DAY_SECONDS} days`;
    const reason = `the period must begin before it ends, and be at most ${most} with this step and selection`;
    throw new RequestShapeError([{ pointer: '/query/from', reason }]);
  }
  return { siteId, spanSeconds, fromSeconds, untilSeconds };
}

/** Of minutes only those that all targets have reported; the current hour is shown as it is so far. */
function lastKnownSeconds(nowSeconds: number, spanSeconds: number): number {
  if (spanSeconds !== MINUTE_SECONDS) return nowSeconds;
  return Math.floor((nowSeconds - WRITTEN_LATE_SECONDS) / MINUTE_SECONDS) * MINUTE_SECONDS;
}

async function addTotals(
  tx: Transaction,
  period: SummaryPeriod,
  table: SeriesTable,
  outcome: SummaryOutcome | undefined,
): Promise<void> {
  for (const { dropped, startSeconds, targets, ...counts } of await tx.decisionSummaries.totals(period)) {
    table.report(startSeconds, targets, dropped);
    for (const name of ['allowed', 'denied', 'observed'] as const) {
      if (outcome === undefined || outcome === name) {
        table.add(startSeconds, { name, outcome: name, count: counts[name] });
      }
    }
  }
}

interface Selection {
  readonly by: DecisionsBy;
  readonly outcome: SummaryOutcome | undefined;
  readonly routeId: string | undefined;
}

async function addRows(
  tx: Transaction,
  period: SummaryPeriod,
  table: SeriesTable,
  selection: Selection,
): Promise<void> {
  let after: RowOf<'decisionSummary'> | undefined;
  for (;;) {
    const rows = await tx.decisionSummaries.rowsWithin(period, after, ROWS_AT_ONCE);
    for (const row of rows) {
      const startSeconds = Number(row.startSeconds);
      table.report(startSeconds, 1, Number(row.dropped));
      if (selection.by === 'target' && selection.routeId === undefined) {
        table.add(startSeconds, ofTarget(row, selection.outcome));
        continue;
      }
      const summary = storedSummary(row);
      if (summary === undefined) continue;
      for (const part of partsOf(summary, row.targetId, selection)) table.add(startSeconds, part);
    }
    after = rows.at(-1);
    // SQLite and JSON run in the event loop's thread.
    await nextTurn();
    if (rows.length < ROWS_AT_ONCE) return;
  }
}

/** Without parsing the row's counts. */
function ofTarget(row: RowOf<'decisionSummary'>, outcome: SummaryOutcome | undefined): Part {
  const { allowed, denied, observed, targetId } = row;
  const sums = { allowed: Number(allowed), denied: Number(denied), observed: Number(observed) };
  const count = outcome === undefined ? sums.allowed + sums.denied + sums.observed : sums[outcome];
  return { name: targetId, targetId, count };
}

function* partsOf(summary: DecisionSummary, targetId: string, selection: Selection): Generator<Part> {
  const { by, outcome, routeId } = selection;
  if (by === 'method') {
    for (const [name, count] of Object.entries(summary.methods)) yield { name, count };
    return;
  }
  if (by === 'latency') {
    for (const [bucket, count] of summary.latency.entries()) {
      yield { name: String(LATENCY_BOUNDS_MS[bucket] ?? 'longer'), count };
    }
    return;
  }
  const selected =
    routeId === undefined ? undefined : summary.routes.filter(({ route_id }) => route_id === routeId);
  const all = selected ?? [...summary.routes, { route_id: OTHER, ...summary.other }];
  for (const { route_id: name, ...counts } of all) {
    if (by === 'reason') yield* reasonsOf(counts, outcome);
    else if (by === 'outcome') yield* outcomesOf(counts, outcome);
    else {
      const count = [...outcomesOf(counts, outcome)].reduce((sum, part) => sum + part.count, 0);
      yield by === 'route' ? { name, count } : { name: targetId, targetId, count };
    }
  }
}

function* reasonsOf(counts: OutcomeCounts, only: SummaryOutcome | undefined): Generator<Part> {
  for (const outcome of ['denied', 'observed'] as const) {
    if (only !== undefined && only !== outcome) continue;
    for (const [name, count] of Object.entries(counts[outcome])) yield { name, outcome, count };
  }
}

function* outcomesOf(
  { allowed, denied, observed }: OutcomeCounts,
  only: SummaryOutcome | undefined,
): Generator<Part> {
  const sums = { allowed, denied: sumOf(denied), observed: sumOf(observed) };
  for (const outcome of ['allowed', 'denied', 'observed'] as const) {
    if (only === undefined || only === outcome) yield { name: outcome, outcome, count: sums[outcome] };
  }
}

type Series = Omit<DecisionSeriesView['series'][number], 'counts' | 'total'> & {
  total: number;
  readonly counts: number[];
};

/** Counts by series and step. */
class SeriesTable {
  readonly #period: SummaryPeriod;
  readonly #steps: number;
  readonly #reporting: number[];
  readonly #series = new Map<string, Series>();
  #dropped = 0;

  constructor(period: SummaryPeriod) {
    this.#period = period;
    this.#steps = (period.untilSeconds - period.fromSeconds) / period.spanSeconds;
    this.#reporting = this.#zeros();
  }

  report(startSeconds: number, targets: number, dropped: number): void {
    increase(this.#reporting, this.#stepOf(startSeconds), targets);
    this.#dropped += dropped;
  }

  add(startSeconds: number, { count, name, outcome, targetId }: Part): void {
    const key = `${outcome} ${name}`;
    let series = this.#series.get(key);
    if (series === undefined) {
      const members = { ...(outcome && { outcome }), ...(targetId !== undefined && { target_id: targetId }) };
      series = { name, ...members, total: 0, counts: this.#zeros() };
      this.#series.set(key, series);
    }
    increase(series.counts, this.#stepOf(startSeconds), count);
    series.total += count;
  }

  view(): Pick<DecisionSeriesView, 'reporting' | 'series' | 'dropped'> {
    const ranked = [...this.#series.values()].toSorted((a, b) => b.total - a.total);
    const rest = ranked.slice(MAX_SERIES);
    const others = { name: OTHER, total: 0, counts: this.#zeros() };
    for (const { counts, total } of rest) {
      others.total += total;
      for (const [step, count] of counts.entries()) increase(others.counts, step, count);
    }
    const series = [...ranked.slice(0, MAX_SERIES), ...(rest.length === 0 ? [] : [others])];
    return { reporting: this.#reporting, series, dropped: this.#dropped };
  }

  #stepOf(startSeconds: number): number {
    return (startSeconds - this.#period.fromSeconds) / this.#period.spanSeconds;
  }

  #zeros(): number[] {
    return Array.from({ length: this.#steps }, () => 0);
  }
}

function increase(counts: number[], step: number, by: number): void {
  counts[step] = (counts[step] ?? 0) + by;
}
