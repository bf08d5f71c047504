/**
 * Counts of decisions: what an instance of a verifier posts to Control a minute, and what Control keeps of a target. Bounded
 * in memory and as text, whatever callers send. Codes come from closed sets, route IDs from the bundle.
 * Source: docs/design/bundle.md "Distribution".
 */
import { DETAIL_KINDS, isKnownDetail, REASONS, type Reason } from '../../protocol/reasons.ts';
import { isJsonObject } from '../../protocol/strict-json.ts';
import type { UnknownKey } from './unknown-keys.ts';

export const SUMMARIES_PATH = '/v1/targets/self/summaries';
/** Maximum size as JSON, of a post and of a row. Less than 4 KiB, so that a row of SQLite fits in one page. */
export const MAX_SUMMARY_BYTES = 3840;
/** Maximum number of routes that are counted on their own: the busiest. */
export const MAX_SUMMARY_ROUTES = 50;
export const MAX_SUMMARY_COUNT = 1_000_000_000;
/** Methods and reasons outside the closed sets, and routes that are not counted on their own. */
export const OTHER = 'other';
export const SUMMARY_METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', OTHER] as const;
/** Upper bounds of the latency buckets, milliseconds. The last bucket, one more, has none. */
export const LATENCY_BOUNDS_MS: readonly number[] = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 50, 100, 500];
/** A reason, or a reason and its detail, such as `invalid_request_proof/key_unknown`. */
export const SUMMARY_CODE_PATTERN = '^[a-z_]{1,40}(/[a-z0-9_-]{1,40})?$';

/** Routes that are counted at the same time. Above it the less busy half is folded into the others. */
const MAX_COUNTED_ROUTES = 4 * MAX_SUMMARY_ROUTES;
const KNOWN_METHODS: ReadonlySet<string> = new Set(SUMMARY_METHODS);
const KNOWN_REASONS: ReadonlySet<string> = new Set(REASONS);
const CODE = new RegExp(SUMMARY_CODE_PATTERN);

export type SummaryOutcome = 'allowed' | 'denied' | 'observed';

export interface CountedDecision {
  readonly outcome: SummaryOutcome;
  /** Undefined for an allowed request. */
  readonly reason: Reason | undefined;
  /** As a label: `detailLabel` of `reasons.ts`. */
  readonly detail: string;
  readonly routeId: string | undefined;
  readonly method: string;
  readonly durationMs: number;
  /** The derived key of the bundle that signed an allowed request. */
  readonly derivedKeyId?: string | undefined;
  /** The key that the token of a denied request names, which the bundle does not have. */
  readonly unknownKey?: UnknownKey | undefined;
}

export type CodeCounts = { readonly [code: string]: number };

export interface OutcomeCounts {
  readonly allowed: number;
  readonly denied: CodeCounts;
  readonly observed: CodeCounts;
}

/** JSON of a post, and of a row. */
export interface DecisionSummary {
  readonly routes: readonly ({ readonly route_id: string } & OutcomeCounts)[];
  /** Of the other routes, and of requests without a route. */
  readonly other: OutcomeCounts;
  readonly methods: CodeCounts;
  /** Decisions in each bucket of {@link LATENCY_BOUNDS_MS}. */
  readonly latency: readonly number[];
  /** Decisions that are counted nowhere: those of minutes whose post failed. */
  readonly dropped: number;
}

/** Counts of one route. */
class Outcomes {
  allowed = 0;
  total = 0;
  readonly denied = new Map<string, number>();
  readonly observed = new Map<string, number>();

  add(outcome: SummaryOutcome, code: string, count: number): void {
    this.total += count;
    if (outcome === 'allowed') this.allowed += count;
    else increase(this[outcome], code, count);
  }

  addAll(others: Outcomes): void {
    this.add('allowed', '', others.allowed);
    for (const outcome of ['denied', 'observed'] as const) {
      for (const [code, count] of others[outcome]) this.add(outcome, code, count);
    }
  }

  toJSON(): OutcomeCounts {
    const { allowed, denied, observed } = this;
    return { allowed, denied: Object.fromEntries(denied), observed: Object.fromEntries(observed) };
  }

  withoutDetails(): Outcomes {
    const short = new Outcomes();
    short.add('allowed', '', this.allowed);
    for (const outcome of ['denied', 'observed'] as const) {
      for (const [code, count] of this[outcome]) short.add(outcome, reasonOf(code), count);
    }
    return short;
  }
}

/** Counts decisions and other counts together. */
export class DecisionCounts {
  #routes = new Map<string, Outcomes>();
  #other = new Outcomes();
  #methods = new Map<string, number>();
  #latency = emptyBuckets();
  #dropped = 0;

  get total(): number {
    return this.#latency.reduce((sum, count) => sum + count, 0);
  }

  add({ detail, durationMs, method, outcome, reason, routeId }: CountedDecision): void {
    const code = reason === undefined || detail === '' ? (reason ?? '') : `${reason}/${detail}`;
    this.#of(routeId).add(outcome, code, 1);
    increase(this.#methods, methodOf(method), 1);
    let bucket = 0;
    while (durationMs > (LATENCY_BOUNDS_MS[bucket] ?? Number.POSITIVE_INFINITY)) bucket += 1;
    this.#latency[bucket] = (this.#latency[bucket] ?? 0) + 1;
  }

  /** Notes decisions that are counted nowhere; never more than Control takes. */
  drop(count: number): void {
    this.#dropped = Math.min(this.#dropped + count, MAX_SUMMARY_COUNT);
  }

  /** @param isRoute whether a route ID is known; others are counted as other routes */
  merge(summary: DecisionSummary, isRoute: (routeId: string) => boolean = () => true): void {
    for (const { route_id: routeId, ...counts } of summary.routes) {
      addCounts(this.#of(isRoute(routeId) ? routeId : undefined), counts);
    }
    addCounts(this.#other, summary.other);
    for (const [method, count] of Object.entries(summary.methods))
      increase(this.#methods, methodOf(method), count);
    for (const bucket of this.#latency.keys()) {
      this.#latency[bucket] = (this.#latency[bucket] ?? 0) + (summary.latency[bucket] ?? 0);
    }
    this.#dropped += summary.dropped;
  }

  /** The counts, at most {@link MAX_SUMMARY_BYTES} as JSON: routes that do not fit are counted as others. */
  summary(): DecisionSummary {
    const ranked = [...this.#routes].sort(([, a], [, b]) => b.total - a.total);
    for (let kept = Math.min(ranked.length, MAX_SUMMARY_ROUTES); ; kept = Math.floor(kept * 0.8)) {
      const summary = this.#withRoutes(ranked, kept);
      if (sizeOf(summary) <= MAX_SUMMARY_BYTES) return summary;
      if (kept === 0) return { ...summary, other: outcomesOf(summary.other).withoutDetails().toJSON() };
    }
  }

  #withRoutes(ranked: readonly (readonly [string, Outcomes])[], kept: number): DecisionSummary {
    const other = new Outcomes();
    other.addAll(this.#other);
    for (const [, outcomes] of ranked.slice(kept)) other.addAll(outcomes);
    return {
      routes: ranked.slice(0, kept).map(([route_id, outcomes]) => ({ route_id, ...outcomes.toJSON() })),
      other: other.toJSON(),
      methods: Object.fromEntries(this.#methods),
      latency: [...this.#latency],
      dropped: this.#dropped,
    };
  }

  /** The summary so far; counting begins again. */
  take(): DecisionSummary {
    const summary = this.summary();
    this.#routes = new Map();
    this.#other = new Outcomes();
    this.#methods = new Map();
    this.#latency = emptyBuckets();
    this.#dropped = 0;
    return summary;
  }

  #of(routeId: string | undefined): Outcomes {
    if (routeId === undefined) return this.#other;
    const known = this.#routes.get(routeId);
    if (known !== undefined) return known;
    if (this.#routes.size >= MAX_COUNTED_ROUTES) this.#foldQuietRoutes();
    const outcomes = new Outcomes();
    this.#routes.set(routeId, outcomes);
    return outcomes;
  }

  /** A caller that uses many routes once must not displace the busy ones. */
  #foldQuietRoutes(): void {
    const ranked = [...this.#routes].sort(([, a], [, b]) => b.total - a.total);
    for (const [routeId, outcomes] of ranked.slice(MAX_COUNTED_ROUTES / 2)) {
      this.#other.addAll(outcomes);
      this.#routes.delete(routeId);
    }
  }
}

/** Number of decisions that it counts. */
export function totalOf({ latency }: DecisionSummary): number {
  return latency.reduce((sum, count) => sum + count, 0);
}

/** Sums over routes. */
export function outcomeTotals({ other, routes }: DecisionSummary): {
  readonly [O in SummaryOutcome]: number;
} {
  const sums = { allowed: 0, denied: 0, observed: 0 };
  for (const counts of [other, ...routes]) {
    sums.allowed += counts.allowed;
    sums.denied += sumOf(counts.denied);
    sums.observed += sumOf(counts.observed);
  }
  return sums;
}

export function sumOf(counts: CodeCounts): number {
  return Object.values(counts).reduce((sum, count) => sum + count, 0);
}

/** The part of a code before its detail. */
export function reasonOf(code: string): string {
  const end = code.indexOf('/');
  return end === -1 ? code : code.slice(0, end);
}

/** Undefined for a value in another form. */
export function parseSummary(value: unknown): DecisionSummary | undefined {
  return isSummary(value) ? value : undefined;
}

function isSummary(value: unknown): value is DecisionSummary {
  if (!isJsonObject(value)) return false;
  const { dropped, latency, methods, other, routes } = value;
  return (
    isCount(dropped) &&
    Array.isArray(latency) &&
    latency.length === LATENCY_BOUNDS_MS.length + 1 &&
    latency.every(isCount) &&
    areCounts(methods) &&
    isOutcomes(other) &&
    Array.isArray(routes) &&
    routes.length <= MAX_SUMMARY_ROUTES &&
    routes.every((route) => isOutcomes(route) && 'route_id' in route && typeof route.route_id === 'string')
  );
}

function isOutcomes(value: unknown): value is OutcomeCounts {
  return (
    isJsonObject(value) && isCount(value.allowed) && areCounts(value.denied) && areCounts(value.observed)
  );
}

function areCounts(value: unknown): boolean {
  return isJsonObject(value) && Object.values(value).every(isCount);
}

function isCount(value: unknown): boolean {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}

/** The code as it is kept: an unknown detail is left out, an unknown reason is `other`. */
function knownCode(code: string): string {
  const reason = reasonOf(code);
  if (!CODE.test(code) || !KNOWN_REASONS.has(reason)) return OTHER;
  const detail = code.slice(reason.length + 1);
  return DETAIL_KINDS.includes(detail) || isKnownDetail(detail) ? code : reason;
}

function methodOf(method: string): string {
  return KNOWN_METHODS.has(method) ? method : OTHER;
}

function outcomesOf(counts: OutcomeCounts): Outcomes {
  const outcomes = new Outcomes();
  addCounts(outcomes, counts);
  return outcomes;
}

function addCounts(outcomes: Outcomes, { allowed, denied, observed }: OutcomeCounts): void {
  outcomes.add('allowed', '', allowed);
  for (const [code, count] of Object.entries(denied)) outcomes.add('denied', knownCode(code), count);
  for (const [code, count] of Object.entries(observed)) outcomes.add('observed', knownCode(code), count);
}

function increase(counts: Map<string, number>, name: string, by: number): void {
  counts.set(name, Math.min((counts.get(name) ?? 0) + by, Number.MAX_SAFE_INTEGER));
}

function emptyBuckets(): number[] {
  return [...LATENCY_BOUNDS_MS, 0].map(() => 0);
}

function sizeOf(summary: DecisionSummary): number {
  return Buffer.byteLength(JSON.stringify(summary));
}
