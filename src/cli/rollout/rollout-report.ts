/**
 * What audit events say about the callers of each route: how many of their requests are verified, and why the others are not.
 * Source: docs/operate/observe.md "Read the report".
 */
import { MAX_ROUTES } from '../../bundle/format/bundle-limits.ts';
import { DECISION_EVENT_NAME } from '../../process/telemetry/decision-event.ts';
import { REASONS } from '../../protocol/reasons.ts';
import { isJsonObject, parseStrictJson } from '../../protocol/strict-json.ts';

/** Limits the rows of all routes, because callers choose the subjects of unverified events. */
const MAX_ROWS = 100_000;
const OTHER = 'other';

interface Count {
  readonly outcome: 'allowed' | 'observed' | 'denied';
  /** Null of an allowed request, and where an event has none. */
  readonly reason: string | null;
  readonly detail: string | null;
  /** What the request claimed, or was verified. Null without a passport that can be read. */
  readonly issuer: string | null;
  readonly subject: string | null;
  requests: number;
}

export interface RouteRollout {
  /** Null: no route matched. */
  readonly route_id: string | null;
  readonly requests: number;
  readonly verified: number;
  /** Rounded down to two decimals; null without a request. */
  readonly verified_percent: number | null;
  /** Issuers and subjects with requests that are not verified; all without a passport count as one. */
  readonly sources_left: number;
  readonly first: string | null;
  readonly last: string | null;
  /** By outcome, reason, detail and caller, the most frequent first. */
  readonly counts: readonly Readonly<Count>[];
}

export interface RolloutReport {
  readonly routes: readonly RouteRollout[];
  /** Lines that are not decision events, too long, or of too many routes. */
  readonly lines_skipped: number;
}

interface Tally {
  readonly routeId: string | null;
  readonly counts: Map<string, Count>;
  first: string | null;
  last: string | null;
}

export class Rollout {
  readonly #routeId: string | undefined;
  readonly #tallies = new Map<string, Tally>();
  #rows = 0;
  #skipped = 0;

  /** @param routeId only this route; undefined: all */
  constructor(routeId: string | undefined) {
    this.#routeId = routeId;
  }

  /** @param line of an audit file; undefined: too long */
  add(line: string | undefined): void {
    const event = line === undefined ? undefined : eventOf(line);
    if (event === undefined || !this.#hasRoomFor(event.routeId)) {
      this.#skipped += 1;
      return;
    }
    if (this.#routeId !== undefined && event.routeId !== this.#routeId) return;
    const tally = this.#tallyOf(event.routeId);
    if (tally.first === null || event.time < tally.first) tally.first = event.time;
    if (tally.last === null || event.time > tally.last) tally.last = event.time;
    this.#count(tally, event.count);
  }

  report(): RolloutReport {
    const routes = [...this.#tallies.values()].map(routeOf);
    const name = ({ route_id }: RouteRollout) => route_id ?? '\uffff';
    return {
      routes: routes.sort((a, b) => (name(a) < name(b) ? -1 : 1)),
      lines_skipped: this.#skipped,
    };
  }

  #hasRoomFor(routeId: string | null): boolean {
    return this.#tallies.size <= MAX_ROUTES || this.#tallies.has(JSON.stringify(routeId));
  }

  #tallyOf(routeId: string | null): Tally {
    const key = JSON.stringify(routeId);
    const known = this.#tallies.get(key);
    if (known !== undefined) return known;
    const tally: Tally = { routeId, counts: new Map(), first: null, last: null };
    this.#tallies.set(key, tally);
    return tally;
  }

  #count(tally: Tally, count: Count): void {
    const key = keyOf(count);
    const known = tally.counts.get(key);
    if (known !== undefined) {
      known.requests += 1;
      return;
    }
    if (this.#rows < MAX_ROWS) {
      this.#rows += 1;
      tally.counts.set(key, count);
      return;
    }
    const other: Count = { ...count, detail: OTHER, issuer: OTHER, subject: OTHER };
    const rest = tally.counts.get(keyOf(other));
    if (rest === undefined) tally.counts.set(keyOf(other), other);
    else rest.requests += 1;
  }
}

function keyOf({ detail, issuer, outcome, reason, subject }: Count): string {
  return JSON.stringify([outcome, reason, detail, issuer, subject]);
}

function eventOf(line: string) {
  let value: unknown;
  try {
    value = parseStrictJson(line);
  } catch {
    return undefined;
  }
  if (!isJsonObject(value) || value.event !== DECISION_EVENT_NAME) return undefined;
  const { outcome, time } = value;
  if (outcome !== 'allowed' && outcome !== 'observed' && outcome !== 'denied') return undefined;
  if (typeof time !== 'string') return undefined;
  const text = (member: string) => {
    const found = Object.getOwnPropertyDescriptor(value, member)?.value;
    return typeof found === 'string' ? found : null;
  };
  const reason = text('reason');
  if (reason !== null && !REASONS.some((known) => known === reason)) return undefined;
  const count: Count = {
    outcome,
    reason,
    detail: text('detail'),
    issuer: text('issuer'),
    subject: text('subject'),
    requests: 1,
  };
  return { time, routeId: text('route_id'), count };
}

function routeOf({ counts, first, last, routeId }: Tally): RouteRollout {
  const sorted = [...counts.values()].sort(
    (a, b) => b.requests - a.requests || (keyOf(a) < keyOf(b) ? -1 : 1),
  );
  const sum = (some: readonly Count[]) => some.reduce((total, { requests }) => total + requests, 0);
  const requests = sum(sorted);
  const verified = sum(sorted.filter(({ outcome }) => outcome === 'allowed'));
  const unverified = sorted.filter(({ outcome }) => outcome !== 'allowed');
  const sources = new Set(unverified.map(({ issuer, subject }) => JSON.stringify([issuer, subject])));
  return {
    route_id: routeId,
    requests,
    verified,
    verified_percent: requests === 0 ? null : Math.floor((verified * 10_000) / requests) / 100,
    sources_left: sources.size,
    first,
    last,
    counts: sorted,
  };
}

const MAX_SHOWN = 20;

function percentText(percent: number | null): string {
  return (percent ?? 0).toFixed(2).replace(/\.?0+$/, '');
}

/** The report as lines; what events say is not yet made visible. */
export function rolloutLines({ lines_skipped: skipped, routes }: RolloutReport): readonly string[] {
  const lines =
    routes.length === 0 ? ['no decision of this route in these files'] : routes.flatMap(linesOfRoute);
  return skipped === 0
    ? lines
    : [...lines, `${skipped} lines were skipped: they are not decisions, or too long`];
}

function linesOfRoute(route: RouteRollout): readonly string[] {
  const {
    counts,
    first,
    last,
    requests,
    route_id: routeId,
    sources_left: left,
    verified_percent: percent,
  } = route;
  const unverified = counts.filter(({ outcome }) => outcome !== 'allowed');
  const verified = counts.filter(({ outcome }) => outcome === 'allowed');
  return [
    `${routeId ?? 'no route'}: ${requests} requests from ${first} to ${last}`,
    ...section('verified', verified, ({ requests: count, ...caller }) => `${count}  ${callerOf(caller)}`),
    ...section('not verified', unverified, ({ detail, outcome, reason, requests: count, ...caller }) => {
      const fault = detail === null ? reason : `${reason} (${detail})`;
      return `${count}  ${outcome} ${fault}  ${callerOf(caller)}`;
    }),
    `  ${left === 0 ? 'safe to enforce' : 'not safe to enforce yet'}: ${percentText(percent)} % verified, ${left} ${left === 1 ? 'source' : 'sources'} left`,
  ];
}

function section(title: string, counts: readonly Count[], show: (count: Count) => string): readonly string[] {
  if (counts.length === 0) return [];
  const more = counts.length - MAX_SHOWN;
  return [
    `  ${title}:`,
    ...counts.slice(0, MAX_SHOWN).map((count) => `    ${show(count)}`),
    ...(more > 0 ? [`    and ${more} more rows: --output json has them`] : []),
  ];
}

function callerOf({ issuer, subject }: Pick<Count, 'issuer' | 'subject'>): string {
  if (issuer === null && subject === null) return 'no passport';
  return `${subject ?? 'unknown'} of ${issuer ?? 'unknown'}`;
}
