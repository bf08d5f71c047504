/**
 * Collects what targets report of their decisions, and writes it: a row a target and minute, and one a target and hour. Rows of
 * targets, not of instances, because they are fewer and do not grow with replicas. Control's clock says the minute: the holder
 * of a stolen token can lie about its own target, and can neither write another minute nor another row.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import {
  DecisionCounts,
  type DecisionSummary,
  outcomeTotals,
  parseSummary,
} from '../../bundle/format/decision-summary.ts';
import type { KnownTarget } from '../publishing/target-tokens.ts';
import type { ControlStore } from '../store/port.ts';
import type { RowOf } from '../store/repositories/records.ts';
import type { Transaction } from '../store/transaction.ts';
import { PostAllowance } from './post-allowance.ts';

export const MINUTE_SECONDS = 60;
export const HOUR_SECONDS = 3600;
/** Instances post at most 20 seconds after a minute, and clocks differ: `summary-poster.ts`. */
const REPORTED_LATE_SECONDS = 30;
const WRITE_EVERY_MS = 5_000;
/** After the end of a minute: when all that targets report of it is written. */
export const WRITTEN_LATE_SECONDS = REPORTED_LATE_SECONDS + 5;

type Row = RowOf<'decisionSummary'>;
type Store = Pick<ControlStore, 'writeUnaudited'>;

export interface CollectedSummariesOptions {
  readonly store: Store;
  readonly nowMs: () => number;
  /** Receives the error of a write; what it would have written is dropped. */
  readonly onFault: (error: unknown) => void;
}

/** Counts of a target by start of the minute, seconds since the epoch. */
type Minutes = Map<number, DecisionCounts>;

export class CollectedSummaries {
  readonly #options: CollectedSummariesOptions;
  /** By site, then by target. */
  #pending = new Map<string, Map<string, Minutes>>();
  readonly #allowance = new PostAllowance();
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> = Promise.resolve();

  constructor(options: CollectedSummariesOptions) {
    this.#options = options;
  }

  /** Adds the summary of an instance, which is written some seconds later. @throws ApiProblem `rate_limited` */
  add({ siteId, targetId }: Pick<KnownTarget, 'siteId' | 'targetId'>, summary: DecisionSummary): void {
    const nowMs = this.#options.nowMs();
    this.#allowance.spend(targetId, nowMs);
    const seconds = Math.floor(nowMs / 1000) - REPORTED_LATE_SECONDS;
    const targets = entryOf(this.#pending, siteId, () => new Map<string, Minutes>());
    const minutes = entryOf(targets, targetId, (): Minutes => new Map());
    entryOf(minutes, seconds - (seconds % MINUTE_SECONDS), () => new DecisionCounts()).merge(summary);
    this.#timer ??= setTimeout(() => this.#flush(), WRITE_EVERY_MS);
  }

  #flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const pending = this.#pending;
    this.#pending = new Map();
    this.#writing = this.#writing.then(async () => {
      for (const [siteId, targets] of pending) await this.#write(siteId, targets);
    });
  }

  async #write(siteId: string, targets: ReadonlyMap<string, Minutes>): Promise<void> {
    const { onFault, store } = this.#options;
    // Under the site's lock, because another instance of Control may add to the same rows.
    await store
      .writeUnaudited({ kind: 'site', siteId }, (tx) => addToRows(tx, siteId, targets))
      .catch(onFault);
  }

  /** Writes what is still pending. */
  async close(): Promise<void> {
    if (this.#timer !== undefined) this.#flush();
    await this.#writing;
  }
}

async function addToRows(
  tx: Transaction,
  siteId: string,
  targets: ReadonlyMap<string, Minutes>,
): Promise<void> {
  const attached = await tx.decisionSummaries.attached([...targets.keys()]);
  const routeIds = new Set<string>();
  for (const minutes of targets.values()) {
    for (const counts of minutes.values()) {
      for (const { route_id: routeId } of counts.summary().routes) routeIds.add(routeId);
    }
  }
  const routes = await tx.decisionSummaries.routesAmong(siteId, [...routeIds]);
  const rows: Row[] = [];
  for (const [targetId, minutes] of targets) {
    if (!attached.has(targetId)) continue;
    // SQLite and JSON run in the event loop's thread.
    await nextTurn();
    const hours: Minutes = new Map();
    for (const [startSeconds, counts] of minutes) {
      const summary = counts.summary();
      const place = { siteId, targetId, spanSeconds: MINUTE_SECONDS, startSeconds };
      rows.push(await merged(tx, place, summary, routes));
      const hour = startSeconds - (startSeconds % HOUR_SECONDS);
      entryOf(hours, hour, () => new DecisionCounts()).merge(summary);
    }
    for (const [startSeconds, counts] of hours) {
      const place = { siteId, targetId, spanSeconds: HOUR_SECONDS, startSeconds };
      rows.push(await merged(tx, place, counts.summary(), routes));
    }
  }
  await tx.decisionSummaries.put(rows);
}

async function merged(
  tx: Transaction,
  place: Pick<Row, 'siteId' | 'targetId' | 'spanSeconds' | 'startSeconds'>,
  summary: DecisionSummary,
  routes: ReadonlySet<string>,
): Promise<Row> {
  const before = await tx.decisionSummaries.find(place.targetId, place.spanSeconds, place.startSeconds);
  const counts = new DecisionCounts();
  const stored = before && storedSummary(before);
  if (stored !== undefined) counts.merge(stored);
  counts.merge(summary, (routeId) => routes.has(routeId));
  return summaryRow(place, counts.summary());
}

export function summaryRow(
  place: Pick<Row, 'siteId' | 'targetId' | 'spanSeconds' | 'startSeconds'>,
  summary: DecisionSummary,
): Row {
  const { dropped } = summary;
  return { ...place, ...outcomeTotals(summary), dropped, summary: JSON.stringify(summary) };
}

/** Undefined for a row that another version wrote in another form. */
export function storedSummary({ summary }: Pick<Row, 'summary'>): DecisionSummary | undefined {
  return parseSummary(JSON.parse(summary));
}

function entryOf<K, V>(map: Map<K, V>, key: K, create: () => V): V {
  const known = map.get(key);
  if (known !== undefined) return known;
  const created = create();
  map.set(key, created);
  return created;
}
