/** Tests that counts of decisions stay bounded, lose none, and hold nothing that callers choose. */
import { describe, expect, it } from '@jest/globals';
import {
  type CountedDecision,
  DecisionCounts,
  MAX_SUMMARY_BYTES,
  outcomeTotals,
  parseSummary,
  totalOf,
} from '../../../src/bundle/format/decision-summary.ts';
import { REASONS } from '../../../src/protocol/reasons.ts';

const ALLOWED: CountedDecision = {
  outcome: 'allowed',
  reason: undefined,
  detail: '',
  routeId: 'orders-read',
  method: 'GET',
  durationMs: 0.2,
};
const KEY_UNKNOWN: CountedDecision = {
  ...ALLOWED,
  outcome: 'denied',
  reason: 'invalid_request_proof',
  detail: 'key_unknown',
};

describe('decision counts', () => {
  it('are by route, outcome, code, method and latency', () => {
    const counts = new DecisionCounts();
    counts.add(ALLOWED);
    counts.add({ ...ALLOWED, durationMs: 501 });
    counts.add(KEY_UNKNOWN);
    counts.add({ ...KEY_UNKNOWN, outcome: 'observed', reason: 'jti_replay', detail: '' });
    counts.add({ ...KEY_UNKNOWN, routeId: undefined, method: 'BREW' });
    counts.drop(7);
    expect(counts.take()).toEqual({
      routes: [
        {
          route_id: 'orders-read',
          allowed: 2,
          denied: { 'invalid_request_proof/key_unknown': 1 },
          observed: { jti_replay: 1 },
        },
      ],
      other: { allowed: 0, denied: { 'invalid_request_proof/key_unknown': 1 }, observed: {} },
      methods: { GET: 4, other: 1 },
      latency: [0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 1],
      dropped: 7,
    });
    expect(totalOf(counts.take())).toBe(0);
  });

  it('of many routes with every reason and long IDs fit, and keep all decisions and the busiest route', () => {
    const counts = new DecisionCounts();
    const add = (decision: CountedDecision, times: number) => {
      for (let time = 0; time < times; time++) counts.add(decision);
    };
    add(ALLOWED, 50);
    for (let route = 0; route < 2000; route++) {
      const routeId = `${route}-${'x'.repeat(500)}`;
      for (const reason of REASONS) add({ ...KEY_UNKNOWN, routeId, reason }, 1);
      if (route % 10 === 0) add(ALLOWED, 5);
    }
    const summary = counts.take();
    expect(Buffer.byteLength(JSON.stringify(summary))).toBeLessThanOrEqual(MAX_SUMMARY_BYTES);
    expect(outcomeTotals(summary)).toEqual({ allowed: 1050, denied: 2000 * REASONS.length, observed: 0 });
    expect(summary.routes[0]).toMatchObject({ route_id: 'orders-read', allowed: 1050 });
  });

  it('that were dropped for days are as many as Control takes', () => {
    const counts = new DecisionCounts();
    for (let minutes = 0; minutes < 3; minutes++) counts.drop(900_000_000);
    expect(counts.take().dropped).toBe(1_000_000_000);
  });

  it('of the largest numbers fit without any route', () => {
    const counts = new DecisionCounts();
    const denied = Object.fromEntries(
      REASONS.flatMap((reason) =>
        ['key_unknown', 'passport_not_yet_valid', 'authorization_missing'].map((detail) => [
          `${reason}/${detail}`,
          Number.MAX_SAFE_INTEGER,
        ]),
      ),
    );
    const outcomes = { allowed: Number.MAX_SAFE_INTEGER, denied, observed: denied };
    const latency = new Array(11).fill(Number.MAX_SAFE_INTEGER);
    counts.merge({ routes: [], other: outcomes, methods: {}, latency, dropped: Number.MAX_SAFE_INTEGER });
    expect(Buffer.byteLength(JSON.stringify(counts.summary()))).toBeLessThanOrEqual(MAX_SUMMARY_BYTES);
  });

  it('that another process or target sends are added, with closed codes and known routes only', () => {
    const counts = new DecisionCounts();
    const sent = JSON.parse(
      `{"routes": [{"route_id": "orders-read", "allowed": 1, "denied": {"invalid_request_proof/made_up": 2, "made_up": 3, "__proto__": 4}, "observed": {}},
        {"route_id": "elsewhere", "allowed": 5, "denied": {}, "observed": {}}],
        "other": {"allowed": 0, "denied": {"request_binding_mismatch/header": 6}, "observed": {}}, "methods": {"__proto__": 1},
        "latency": [21,0,0,0,0,0,0,0,0,0,0], "dropped": 0}`,
    );
    const summary = parseSummary(sent);
    if (summary === undefined) throw new Error('not a summary');
    counts.merge(summary, (routeId) => routeId === 'orders-read');
    expect(counts.summary()).toMatchObject({
      routes: [{ route_id: 'orders-read', allowed: 1, denied: { invalid_request_proof: 2, other: 7 } }],
      other: { allowed: 5, denied: { 'request_binding_mismatch/header': 6 } },
      methods: { other: 1 },
    });
  });

  it.each([
    ['no object', '[]'],
    ['a missing member', '{"routes":[],"methods":{},"latency":[0,0,0,0,0,0,0,0,0,0,0],"dropped":0}'],
    [
      'a count below zero',
      new DecisionCounts().summary(),
      (text: string) => text.replace('"dropped":0', '"dropped":-1'),
    ],
    [
      'a count that is no whole number',
      new DecisionCounts().summary(),
      (text: string) => text.replace('"dropped":0', '"dropped":0.5'),
    ],
    ['too few buckets', new DecisionCounts().summary(), (text: string) => text.replace('[0,', '[')],
    [
      'a count that is a text',
      new DecisionCounts().summary(),
      (text: string) => text.replace('"methods":{}', '"methods":{"GET":"1"}'),
    ],
  ])('%s is no summary', (_, value, edit = (text: string) => text) => {
    const text = edit(typeof value === 'string' ? value : JSON.stringify(value));
    expect(parseSummary(JSON.parse(text))).toBeUndefined();
  });
});
