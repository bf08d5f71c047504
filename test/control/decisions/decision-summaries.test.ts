/** Tests what Control keeps of the decisions that targets report, and what the holder of a stolen target token can do to it. */
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import {
  DecisionCounts,
  type DecisionSummary,
  MAX_SUMMARY_BYTES,
  type OutcomeCounts,
} from '../../../src/bundle/format/decision-summary.ts';
import { CollectedSummaries } from '../../../src/control/decisions/collected-summaries.ts';
import { type DecisionsQuery, decisionSeries } from '../../../src/control/decisions/decision-series.ts';
import { pruneSummaries } from '../../../src/control/decisions/pruned-summaries.ts';
import { addTargets, detach, type TestTarget } from '../publishing/control-server.ts';
import { ControlWorld, ORDERS_READ, SITE } from '../publishing/publishing-fixture.ts';

const HOUR_MS = 3_600_000;
const NONE: OutcomeCounts = { allowed: 0, denied: {}, observed: {} };
const KEY_UNKNOWN = 'invalid_request_proof/key_unknown';

let world: ControlWorld;
let targets: readonly TestTarget[];
let summaries: CollectedSummaries;
let faults: unknown[];
beforeEach(async () => {
  world = await ControlWorld.open();
  targets = await addTargets(world, 2);
  await world.putRoute(ORDERS_READ);
  faults = [];
  const { clock, store } = world;
  summaries = new CollectedSummaries({ store, nowMs: clock.nowMs, onFault: (error) => faults.push(error) });
});
afterEach(async () => {
  await summaries.close();
  await world.close();
  expect(faults).toEqual([]);
});

function summaryOf(allowed: number, denied: OutcomeCounts['denied'] = {}, routeId = ORDERS_READ.route_id) {
  const summary = new DecisionCounts().summary();
  const routes = [{ ...NONE, route_id: routeId, allowed, denied }];
  return { ...summary, routes, methods: { GET: allowed }, latency: summary.latency.with(2, allowed) };
}

function add(target: number, summary: DecisionSummary): void {
  const { id: targetId = '' } = targets[target] ?? {};
  summaries.add({ targetId, siteId: SITE }, summary);
}

async function read(query: DecisionsQuery = {}) {
  await summaries.close();
  return world.read((tx) => decisionSeries(tx, SITE, query, world.clock.ms));
}

/** Sum of each series by its name. */
async function totals(query: DecisionsQuery) {
  const { series } = await read(query);
  return Object.fromEntries(series.map(({ name, total }) => [name, total]));
}

const rows = (spanSeconds = 60) =>
  world.read((tx) =>
    tx.decisionSummaries.rowsWithin(
      { siteId: SITE, spanSeconds, fromSeconds: 0, untilSeconds: Number.MAX_SAFE_INTEGER },
      undefined,
      1000,
    ),
  );

describe('reported decisions', () => {
  it('of instances, minutes and targets are added, and read by each member', async () => {
    add(0, summaryOf(3, { [KEY_UNKNOWN]: 2 }));
    add(0, summaryOf(4));
    await summaries.close();
    add(1, { ...summaryOf(5, { jti_replay: 1 }), dropped: 9 });
    await summaries.close();
    world.clock.ms += 60_000;
    add(1, summaryOf(10));
    const outcomes = await read({ until: new Date(world.clock.ms).toISOString() });
    expect(outcomes).toMatchObject({ step: 'minute', by: 'outcome', dropped: 9 });
    expect(outcomes.reporting.slice(-3)).toEqual([0, 2, 1]);
    expect(outcomes.series.map(({ counts, name }) => [name, ...counts.slice(-3)])).toEqual([
      ['allowed', 0, 12, 10],
      ['denied', 0, 3, 0],
      ['observed', 0, 0, 0],
    ]);
    const until = outcomes.until;
    expect(await totals({ until, by: 'reason' })).toEqual({ [KEY_UNKNOWN]: 2, jti_replay: 1 });
    expect(await totals({ until, by: 'route', outcome: 'denied' })).toEqual({ 'orders-read': 3, other: 0 });
    expect(await totals({ until, by: 'method' })).toEqual({ GET: 22 });
    expect(await totals({ until, by: 'latency' })).toMatchObject({ 0.5: 22, longer: 0 });
    expect(await totals({ until, route_id: 'orders-read' })).toEqual({ allowed: 22, denied: 3, observed: 0 });
    expect(await totals({ until, route_id: 'elsewhere' })).toEqual({});
    const [first, second] = targets.map(({ id }) => id);
    expect(await totals({ until, by: 'target' })).toEqual({ [`${second}`]: 16, [`${first}`]: 9 });
    expect(await totals({ step: 'hour' })).toEqual({ allowed: 22, denied: 3, observed: 0 });
  });

  it('by minute are kept for a day, by hour for seven', async () => {
    add(0, summaryOf(3));
    await summaries.close();
    world.clock.ms += 25 * HOUR_MS;
    await pruneSummaries(world.store, world.clock.ms);
    expect([(await rows()).length, (await rows(3600)).length]).toEqual([0, 1]);
    world.clock.ms += 7 * 24 * HOUR_MS;
    await pruneSummaries(world.store, world.clock.ms);
    expect(await rows(3600)).toEqual([]);
  });

  it.each<[string, DecisionsQuery]>([
    ['ends before it begins', { from: '2026-11-21T04:00:00Z', until: '2026-11-21T03:00:00Z' }],
    ['is longer than a day of minutes', { from: '2026-11-19T04:00:00Z', until: '2026-11-21T04:00:00Z' }],
    [
      'is longer than two hours of minutes by reason',
      { from: '2026-11-21T01:00:00Z', until: '2026-11-21T04:00:00Z', by: 'reason' },
    ],
    [
      'is longer than seven days of hours',
      { from: '2026-11-12T04:00:00Z', until: '2026-11-21T04:00:00Z', step: 'hour' },
    ],
  ])('are not read for a period that %s', async (_, query) => {
    await expect(read(query)).rejects.toMatchObject({ faults: [{ pointer: '/query/from' }] });
  });
});

describe('a stolen target token', () => {
  it('adds no row beyond one a minute and hour, however often and whatever it posts', async () => {
    const long = (n: number) => `${n}-${'x'.repeat(300)}`;
    for (let post = 0; post < 256; post++) {
      add(0, summaryOf(1, { [KEY_UNKNOWN]: 1, made_up: 1 }, long(post)));
    }
    await summaries.close();
    const kept = [...(await rows()), ...(await rows(3600))];
    expect(kept).toHaveLength(2);
    for (const { summary } of kept) {
      expect(summary).not.toContain('x');
      expect(Buffer.byteLength(summary)).toBeLessThanOrEqual(MAX_SUMMARY_BYTES);
      // No route of the site, and no reason that exists.
      expect(JSON.parse(summary)).toMatchObject({ routes: [], other: { denied: { other: 256 } } });
    }
  });

  it('is limited to as many posts a minute as a target has instances, and limits no other target', () => {
    for (let post = 0; post < 256; post++) add(0, summaryOf(1));
    expect(() => add(0, summaryOf(1))).toThrow(expect.objectContaining({ code: 'rate_limited' }));
    add(1, summaryOf(1));
    world.clock.ms += 60_000;
    add(0, summaryOf(1));
  });

  it('writes nothing once its target is detached', async () => {
    add(0, summaryOf(1));
    await detach(world, targets[0]?.id ?? '');
    await summaries.close();
    expect(await rows()).toEqual([]);
  });
});
