/** Observations over the API, on both databases: which ends are accepted, from whom, and with which targets. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { registerRuntimeRoutes } from '../../../src/control/api/routes/runtime-api.ts';
import { SiteSigningKeys } from '../../../src/control/publishing/bundle-signing-keys.ts';
import { MasterKeys } from '../../../src/control/secrets/master-keys.ts';
import { formatTime } from '../../../src/protocol/rfc3339.ts';
import {
  ALLOWED_SOURCES,
  ApiFixture,
  itemsOf,
  ROUTE_DEFINITION,
  type Shop,
  textIn,
} from '../../support/control/api-fixture.ts';
import { databaseKinds } from '../store/databases.ts';

const keyring = new SiteSigningKeys(MasterKeys.random());
const DAY = 86_400;

describe.each(databaseKinds())('$name', (kind) => {
  let fixture: ApiFixture;
  beforeAll(async () => {
    await kind.start();
    const open = await kind.fresh();
    fixture = await ApiFixture.open({
      openStore: (nowMs) => open({ nowMs }),
      extend: (app, { store, nowMs }) => registerRuntimeRoutes(app, { store, nowMs, keyring }),
    });
  });
  afterAll(async () => {
    await fixture.close();
    await kind.stop();
  });

  const inSeconds = (seconds: number) => formatTime(Math.floor(fixture.ms / 1000) + seconds);
  const observed = (seconds: number) => ({ enforcement: 'observe', observe_until: inSeconds(seconds) });
  const route = (members: object) => ({
    route_id: 'orders-read',
    definition: { ...ROUTE_DEFINITION, ...members },
  });
  const routesOf = ({ siteId }: Shop) => `/v1/sites/${siteId}/routes`;

  /** As if requests of the target's verifiers had named the members, or had not. */
  async function seen(targetId: string, knowsMembers: boolean): Promise<void> {
    const nowMs = fixture.ms;
    await fixture.store.writeUnaudited(undefined, (tx) =>
      tx.targets.note(targetId, {
        lastSeenAtMs: nowMs,
        enforcementLackedAtMs: knowsMembers ? nowMs - 60_000 : nowMs,
      }),
    );
  }

  const attach = async ({ siteId }: Shop, name: string) =>
    textIn(await fixture.expect(201, 'POST', `/v1/sites/${siteId}/targets`, { body: { name } }), 'target_id');

  test.each([
    ['without an end', () => ({ enforcement: 'observe' })],
    ['with an end that has passed', () => observed(-1)],
    ['with an end that is now', () => observed(0)],
    ['for more than 30 days', () => observed(30 * DAY + 1)],
    ['until a day that does not exist', () => ({ ...observed(1), observe_until: '2026-11-31T00:00:00Z' })],
    ['by an end alone', () => ({ observe_until: inSeconds(DAY) })],
    ['by an end of an enforced route', () => ({ ...observed(DAY), enforcement: 'enforce' })],
  ])('a route is not observed %s', async (what, members) => {
    const shop = await fixture.shop(`refused ${what}`.replaceAll(' ', '-'));
    for (const [method, path, asked] of [
      ['POST', routesOf(shop), { body: route(members()) }],
      ['PUT', `${routesOf(shop)}/other`, { body: { definition: route(members()).definition }, ifMatch: 1 }],
    ] as const) {
      if (method === 'PUT') {
        const other = { route_id: 'other', definition: ROUTE_DEFINITION };
        await fixture.expect(201, 'POST', routesOf(shop), { body: other });
      }
      const answer = await fixture.call(method, path, asked);
      expect(answer).toMatchObject({ status: 422, code: 'definition_invalid' });
      expect(answer.json.errors).toMatchObject([{ pointer: '/body/definition/observe_until' }]);
    }
    expect(itemsOf(await fixture.expect(200, 'GET', routesOf(shop)))).toMatchObject([{ route_id: 'other' }]);
  });

  test.each([
    ['unmatched', { unmatched: 'observe' }],
    ['unmatched, in the past', { unmatched: 'observe', unmatched_until: '2020-01-01T00:00:00Z' }],
    ['unmatched, too long', { unmatched: 'observe', unmatched_until: '2027-11-21T04:00:00Z' }],
    ['an end alone', { unmatched_until: '2026-11-22T04:00:00Z' }],
    ['an end of denied requests', { unmatched: 'deny', unmatched_until: '2026-11-22T04:00:00Z' }],
  ])('a site is not observed by %s', async (what, change) => {
    const { siteId } = await fixture.shop(`site ${what}`.replaceAll(/[ ,]+/g, '-'));
    const answer = await fixture.call('PATCH', `/v1/sites/${siteId}`, { body: change, ifMatch: 1 });
    expect(answer).toMatchObject({ status: 422, code: 'definition_invalid' });
    expect(answer.json.errors).toMatchObject([{ pointer: '/body/unmatched_until' }]);
  });

  test('an observed route is shown, enforced again, and recorded with actor and reason', async () => {
    const shop = await fixture.shop('observed');
    const body = route(observed(30 * DAY));
    const path = `${routesOf(shop)}/orders-read`;
    const made = await fixture.expect(201, 'POST', `${routesOf(shop)}?reason=roll-out`, { body });
    expect(made.json).toMatchObject(body);
    const sources = { allowed_sources: ALLOWED_SOURCES };
    await fixture.expect(201, 'PUT', `${path}/sources`, { body: sources });
    expect(itemsOf(await fixture.expect(200, 'GET', routesOf(shop)))).toMatchObject([body]);
    const overview = () => fixture.expect(200, 'GET', `/v1/sites/${shop.siteId}/overview`);
    const until = new Date(fixture.ms + 30 * DAY * 1000).toISOString();
    expect((await overview()).json.observation).toEqual({ routes: 1, unmatched: false, until });

    const enforced = { ...ROUTE_DEFINITION, enforcement: 'enforce' };
    await fixture.expect(200, 'PUT', `${path}?reason=all-sign`, {
      body: { definition: enforced },
      ifMatch: 2,
    });
    expect((await overview()).json).not.toHaveProperty('observation');
    const events = await fixture.store.read((tx) =>
      tx.audit.list({ limit: 10, reach: { kind: 'everything' }, resourceId: 'orders-read' }),
    );
    const ofRoute = events.filter(({ kind: what }) => what.startsWith('proofgate.control.route.'));
    expect(ofRoute.map(({ actor, reason }) => [actor, reason])).toEqual([
      [expect.any(String), 'all-sign'],
      [expect.any(String), 'roll-out'],
    ]);
    expect(ofRoute[0]?.before).toContain('"enforcement":"observe"');
    expect(ofRoute[1]?.after).toContain('"enforcement":"observe"');
  });

  test('requests that no route matches are observed, and denied again', async () => {
    const { siteId } = await fixture.shop('unmatched');
    const path = `/v1/sites/${siteId}`;
    expect((await fixture.expect(200, 'GET', path)).json).toMatchObject({ unmatched: 'deny' });
    const change = { unmatched: 'observe', unmatched_until: inSeconds(DAY) };
    const changed = await fixture.expect(200, 'PATCH', path, { body: change, ifMatch: 1 });
    expect(changed.json).toMatchObject(change);
    const until = new Date(fixture.ms + DAY * 1000).toISOString();
    const { json } = await fixture.expect(200, 'GET', `${path}/overview`);
    expect(json.observation).toEqual({ routes: 0, unmatched: true, until });
    await fixture.expect(200, 'PATCH', path, { body: { display_name: 'Other' }, ifMatch: 2 });
    expect((await fixture.expect(200, 'GET', path)).json).toMatchObject(change);
    const denied = await fixture.expect(200, 'PATCH', path, { body: { unmatched: 'deny' }, ifMatch: 3 });
    expect(denied.json).toMatchObject({ unmatched: 'deny' });
    expect(denied.json).not.toHaveProperty('unmatched_until');
  });

  test('every attached target must know the members', async () => {
    const shop = await fixture.shop('targets');
    const site = `/v1/sites/${shop.siteId}`;
    const [old, unseen] = [await attach(shop, 'old-gateway'), await attach(shop, 'unseen-gateway')];
    await seen(await attach(shop, 'current-gateway'), true);
    await seen(old, false);
    const unmatched = { body: { unmatched: 'observe', unmatched_until: inSeconds(DAY) }, ifMatch: 1 };
    const refused = await fixture.call('POST', routesOf(shop), { body: route(observed(DAY)) });
    expect(refused).toMatchObject({ status: 409, code: 'target_too_old' });
    for (const name of ['old-gateway', 'unseen-gateway']) expect(refused.json.detail).toContain(name);
    expect(refused.json.detail).not.toContain('current-gateway');
    expect(await fixture.call('PATCH', site, unmatched)).toMatchObject({
      status: 409,
      code: 'target_too_old',
    });
    await fixture.expect(201, 'POST', routesOf(shop), { body: route({ enforcement: 'enforce' }) });

    await fixture.expect(200, 'POST', `/v1/targets/${unseen}/detach`);
    await seen(old, true);
    await fixture.expect(200, 'PATCH', site, unmatched);
    const { definition } = route(observed(DAY));
    await fixture.expect(200, 'PUT', `${routesOf(shop)}/orders-read`, { body: { definition }, ifMatch: 1 });
    // An observation can always be ended.
    await seen(old, false);
    const path = `${routesOf(shop)}/orders-read`;
    await fixture.expect(200, 'PUT', path, { body: { definition: ROUTE_DEFINITION }, ifMatch: 2 });
    await fixture.expect(200, 'PATCH', site, { body: { unmatched: 'deny' }, ifMatch: 2 });
  });

  test('a viewer may not set it, an operator may not for the site', async () => {
    const shop = await fixture.shop('roles');
    const scope = { kind: 'site', id: shop.siteId } as const;
    const viewer = fixture.operator('viewer', 'viewer', scope);
    const operator = fixture.operator('operator', 'operator', scope);
    const body = route(observed(DAY));
    const denied = await fixture.call('POST', routesOf(shop), { body, token: viewer });
    expect(denied).toMatchObject({ status: 403, code: 'permission_denied' });
    await fixture.expect(201, 'POST', routesOf(shop), { body, token: operator });
    const unmatched = { unmatched: 'observe', unmatched_until: inSeconds(DAY) };
    for (const token of [viewer, operator]) {
      const answer = await fixture.call('PATCH', `/v1/sites/${shop.siteId}`, {
        body: unmatched,
        ifMatch: 1,
        token,
      });
      expect(answer).toMatchObject({ status: 403, code: 'permission_denied' });
    }
  });
});
