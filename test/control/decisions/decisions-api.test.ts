/** Tests that Control rejects summaries and last uses in any other form, and answers whatever identifiers a site has. */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { DecisionCounts, SUMMARIES_PATH } from '../../../src/bundle/format/decision-summary.ts';
import { LAST_USED_PATH } from '../../../src/bundle/format/key-use.ts';
import { UNKNOWN_KEYS_PATH } from '../../../src/bundle/format/unknown-keys.ts';
import { registerDecisionRoutes } from '../../../src/control/api/routes/decisions-api.ts';
import { summaryRow } from '../../../src/control/decisions/collected-summaries.ts';
import { ApiFixture, TARGET_TOKEN } from '../../support/control/api-fixture.ts';

const LONG_ROUTE = 'r'.repeat(512);
const EMPTY = new DecisionCounts().summary();
const ROUTE = { route_id: 'orders-read', allowed: 1, denied: {}, observed: {} };

let fixture: ApiFixture;
let siteId: string;
let received = 0;
const uses: object[] = [];
const unknown: object[] = [];
beforeAll(async () => {
  const summaries = { add: () => void received++ };
  const keyUses = {
    report: async (targetId: string, page: readonly object[]) => void uses.push({ targetId, page }),
  };
  const unknownKeys = {
    report: async ({ siteId: of }: { readonly siteId: string }, keys: readonly object[]) =>
      void unknown.push({ of, keys }),
  };
  fixture = await ApiFixture.open({
    extend: (app, { nowMs, store }) =>
      registerDecisionRoutes(app, { store, nowMs, summaries, keyUses, unknownKeys }),
  });
  ({ siteId } = await fixture.shop());
});
afterAll(() => fixture.close());

const post = (body: object, token = TARGET_TOKEN) => fixture.call('POST', SUMMARIES_PATH, { body, token });

describe('a summary', () => {
  it('of a target is received', async () => {
    expect((await post({ ...EMPTY, routes: [ROUTE] })).status).toBe(204);
    expect(received).toBe(1);
  });

  it.each<[string, number, object]>([
    ['an unknown member', 400, { ...EMPTY, minute: 7 }],
    ['a missing member', 400, { ...EMPTY, dropped: undefined }],
    ['a negative count', 400, { ...EMPTY, dropped: -1 }],
    ['a count that is no whole number', 400, { ...EMPTY, dropped: 0.5 }],
    ['a count that is a text', 400, { ...EMPTY, dropped: '1' }],
    ['a count beyond any real one', 400, { ...EMPTY, dropped: 1e12 }],
    ['another number of buckets', 400, { ...EMPTY, latency: [1] }],
    ['more than 50 routes', 400, { ...EMPTY, routes: new Array(51).fill({ ...ROUTE, route_id: 'r' }) }],
    ['a route that is no identifier', 400, { ...EMPTY, routes: [{ ...ROUTE, route_id: 'a b' }] }],
    ['a code with other characters', 400, { ...EMPTY, other: { ...EMPTY.other, denied: { 'x y': 1 } } }],
    ['a name that a caller chose', 400, { ...EMPTY, other: { ...EMPTY.other, denied: { 'a/header.X': 1 } } }],
    [
      'more than 3,840 bytes',
      413,
      { ...EMPTY, routes: new Array(9).fill({ ...ROUTE, route_id: LONG_ROUTE }) },
    ],
  ])('with %s is rejected: %d', async (_, status, body) => {
    const before = received;
    expect((await post(body)).status).toBe(status);
    expect(received).toBe(before);
  });

  it('of anyone else is rejected', async () => {
    expect((await post(EMPTY, fixture.root)).code).toBe('authentication_required');
    expect((await post(EMPTY, '')).code).toBe('authentication_required');
  });
});

describe('last uses', () => {
  const KEY = { key_id: 'dk_7', used_at: '2026-11-21T04:00:30Z' };
  const report = (body: object, token = TARGET_TOKEN) =>
    fixture.call('POST', LAST_USED_PATH, { body, token });

  it('of a target are received', async () => {
    expect((await report({ keys: [KEY] })).status).toBe(204);
    const usedAtSeconds = Date.parse(KEY.used_at) / 1000;
    expect(uses).toEqual([{ targetId: 'tgt_test', page: [{ keyId: 'dk_7', usedAtSeconds }] }]);
  });

  it.each<[string, number, object]>([
    ['an unknown member', 400, { keys: [KEY], target: 'tgt_other' }],
    ['no key', 400, { keys: [] }],
    ['a name that is no ID', 400, { keys: [{ ...KEY, key_id: 'a b' }] }],
    ['another time', 400, { keys: [{ ...KEY, used_at: 'yesterday' }] }],
    ['a leap second', 400, { keys: [{ ...KEY, used_at: '2016-12-31T23:59:60Z' }] }],
    ['a time of a named zone', 400, { keys: [{ ...KEY, used_at: '2026-01-01T00:00:00Z[Europe/Paris]' }] }],
    ['more than 1,000 keys', 400, { keys: new Array(1001).fill(KEY) }],
    ['more bytes than 1,000 keys need', 413, { keys: [{ ...KEY, key_id: 'x'.repeat(200_000) }] }],
  ])('with %s are rejected: %d', async (_, status, body) => {
    expect((await report(body)).status).toBe(status);
    expect(uses).toHaveLength(1);
  });

  it('of anyone else are rejected', async () => {
    expect((await report({ keys: [KEY] }, fixture.root)).code).toBe('authentication_required');
  });
});

describe('unknown keys', () => {
  const KEY = { issuer: 'https://login.example', kid: 'k1' };
  const report = (body: object, token = TARGET_TOKEN) =>
    fixture.call('POST', UNKNOWN_KEYS_PATH, { body, token });

  it('of a target are received, for its site', async () => {
    const longest = { issuer: '"'.repeat(256), kid: '"'.repeat(128) };
    for (const keys of [[KEY], Array.from({ length: 8 }, () => longest)]) {
      expect((await report({ keys })).status).toBe(204);
      expect(unknown.at(-1)).toEqual({ of: 'x', keys });
    }
  });

  it.each<[string, number, object]>([
    ['an unknown member', 400, { keys: [KEY], site_id: 'other' }],
    ['no key', 400, { keys: [] }],
    ['a name that is no ID', 400, { keys: [{ ...KEY, kid: 'x'.repeat(129) }] }],
    ['more than 8 keys', 400, { keys: new Array(9).fill(KEY) }],
    ['more bytes than 8 keys need', 413, { keys: [{ ...KEY, kid: 'x'.repeat(20_000) }] }],
  ])('with %s are rejected: %d', async (_, status, body) => {
    expect((await report(body)).status).toBe(status);
    expect(unknown).toHaveLength(2);
  });

  it('of anyone else are rejected', async () => {
    expect((await report({ keys: [KEY] }, fixture.root)).code).toBe('authentication_required');
  });
});

describe('decisions', () => {
  const read = (query: string, token = fixture.root) =>
    fixture.call('GET', `/v1/sites/${siteId}/decisions?${query}`, { token });

  it('of a route with the longest ID are read, also by a viewer', async () => {
    const minute = Math.floor(fixture.ms / 60_000) * 60 - 120;
    const place = { siteId, targetId: 'tgt_test', spanSeconds: 60, startSeconds: minute };
    const summary = { ...EMPTY, routes: [{ ...ROUTE, route_id: LONG_ROUTE, denied: { jti_replay: 2 } }] };
    await fixture.store.writeUnaudited(undefined, (tx) =>
      tx.decisionSummaries.put([summaryRow(place, summary)]),
    );
    const viewer = fixture.operator('vera', 'viewer', { kind: 'site', id: siteId });
    const byRoute = await read('by=route', viewer);
    expect(byRoute.json.series).toMatchObject([{ name: LONG_ROUTE, total: 3 }, { name: 'other' }]);
    expect((await read(`by=reason&route_id=${LONG_ROUTE}`)).json.series).toMatchObject([
      { name: 'jti_replay', outcome: 'denied', total: 2 },
    ]);
    expect((await read('by=target')).json.series).toMatchObject([{ name: 'tgt_test', total: 3 }]);
  });

  it.each([
    'by=caller',
    'step=day',
    'from=yesterday',
    'limit=1',
    'from=2026-01-01T00:00:00Z',
    'until=2016-12-31T23:59:60Z',
  ])('are not read with %s', async (query) => {
    expect((await read(query)).code).toBe('request_malformed');
  });
});
