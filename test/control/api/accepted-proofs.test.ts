/** `accepted_proofs` of routes over the API, on both databases: which values are accepted, and with which targets. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { registerRuntimeRoutes } from '../../../src/control/api/routes/runtime-api.ts';
import { SiteSigningKeys } from '../../../src/control/publishing/bundle-signing-keys.ts';
import { MasterKeys } from '../../../src/control/secrets/master-keys.ts';
import {
  ApiFixture,
  itemsOf,
  ROUTE_DEFINITION,
  type Shop,
  SITE_BODY,
  textIn,
} from '../../support/control/api-fixture.ts';
import { databaseKinds } from '../store/databases.ts';

const keyring = new SiteSigningKeys(MasterKeys.random());
const KEYED = ['http-message-signatures'];

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

  const route = (formats: unknown) => ({
    route_id: 'orders-read',
    definition: { ...ROUTE_DEFINITION, accepted_proofs: formats },
  });
  const routesOf = ({ siteId }: Shop) => `/v1/sites/${siteId}/routes`;

  test.each([
    ['no format', []],
    ['an unknown format', ['mtls']],
    ['a format twice', [...KEYED, ...KEYED]],
    ['text', KEYED[0]],
  ])('a route with %s is rejected', async (what, formats) => {
    const shop = await fixture.shop(`refused ${what}`.replaceAll(' ', '-'));
    const answer = await fixture.call('POST', routesOf(shop), { body: route(formats) });
    expect(answer).toMatchObject({ status: 400, code: 'request_malformed' });
    expect(answer.json.errors).toMatchObject([
      { pointer: expect.stringMatching(/^\/body\/definition\/accepted_proofs/) },
    ]);
  });

  test('a route is shown with its formats, loses them, and is recorded', async () => {
    const shop = await fixture.shop('formats');
    const path = `${routesOf(shop)}/orders-read`;
    const formats = ['transcript-v1', ...KEYED];
    const made = await fixture.expect(201, 'POST', routesOf(shop), { body: route(formats) });
    expect(made.json).toMatchObject(route(formats));
    expect(itemsOf(await fixture.expect(200, 'GET', routesOf(shop)))).toMatchObject([route(formats)]);
    const { definition } = route(KEYED);
    await fixture.expect(200, 'PUT', path, { body: { definition }, ifMatch: 1 });
    expect((await fixture.expect(200, 'GET', path)).json).toMatchObject(route(KEYED));
    const changed = await fixture.expect(200, 'PUT', path, {
      body: { definition: ROUTE_DEFINITION },
      ifMatch: 2,
    });
    expect(changed.json.definition).not.toHaveProperty('accepted_proofs');
    const [last] = await fixture.store.read((tx) =>
      tx.audit.list({ limit: 1, reach: { kind: 'everything' }, resourceId: 'orders-read' }),
    );
    expect(last?.before).toContain('"accepted_proofs":["http-message-signatures"]');
    expect(last?.after).not.toContain('accepted_proofs');
  });

  test('a route that takes DPoP proofs says what they leave unbound', async () => {
    const shop = await fixture.shop('dpop');
    const refused = await fixture.call('POST', routesOf(shop), { body: route(['dpop']) });
    expect(refused).toMatchObject({ status: 422, code: 'definition_invalid' });
    const { route_id, definition } = route(['dpop']);
    const whole = { ...definition, unbound: ['route', 'site'], dpop_nonce: 'required' };
    const made = await fixture.expect(201, 'POST', routesOf(shop), { body: { route_id, definition: whole } });
    expect(made.json.definition).toMatchObject(whole);
  });

  test('DPoP without nonces is for origins that no other site has', async () => {
    const [shop, other] = [await fixture.shop('one'), await fixture.shop('other')];
    const OWN = 'https://own.shop.example';
    const withOrigins = ({ siteId }: Shop, ifMatch: number, ...origins: string[]) =>
      fixture.call('PATCH', `/v1/sites/${siteId}`, { body: { origins }, ifMatch });
    const { definition, route_id } = route(['dpop']);
    const unbound = { ...definition, unbound: ['route', 'site'] };
    const create = (more: object) =>
      fixture.call('POST', routesOf(shop), { body: { route_id, definition: { ...unbound, ...more } } });

    const refused = await create({});
    expect(refused).toMatchObject({ status: 422, code: 'definition_invalid' });
    expect(refused.json.errors).toMatchObject([{ pointer: '/body/definition/dpop_nonce' }]);
    expect(await withOrigins(shop, 1, ...SITE_BODY.origins, OWN)).toMatchObject({ status: 200 });
    expect(await create({ origins: [OWN] })).toMatchObject({ status: 201 });

    const taken = await withOrigins(other, 1, OWN);
    expect(taken).toMatchObject({ status: 422, code: 'definition_invalid' });
    expect(taken.json.errors).toMatchObject([{ pointer: '/body/origins/0' }]);
    const site = { ...SITE_BODY, site_id: 'third', issuer_url: 'https://third.shop.example', origins: [OWN] };
    const added = await fixture.call('POST', `/v1/fleets/${other.fleetId}/sites`, { body: site });
    expect(added).toMatchObject({ status: 422, code: 'definition_invalid' });
    expect(await withOrigins(other, 1, ...SITE_BODY.origins)).toMatchObject({ status: 200 });
  });

  test('every attached target must know the member', async () => {
    const shop = await fixture.shop('targets');
    const attach = async (name: string) => {
      const asked = { body: { name } };
      return textIn(
        await fixture.expect(201, 'POST', `/v1/sites/${shop.siteId}/targets`, asked),
        'target_id',
      );
    };
    /** As if a request of the target's verifiers had named the member, or had not. */
    const seen = (targetId: string, knowsMember: boolean) => {
      const nowMs = fixture.ms;
      return fixture.store.writeUnaudited(undefined, (tx) =>
        tx.targets.note(targetId, {
          lastSeenAtMs: nowMs,
          acceptedProofsLackedAtMs: knowsMember ? nowMs - 60_000 : nowMs,
        }),
      );
    };
    const [old, unseen] = [await attach('old-gateway'), await attach('unseen-gateway')];
    await seen(await attach('current-gateway'), true);
    await seen(old, false);
    // The default, when it is written, is in bundles, too.
    for (const formats of [KEYED, ['transcript-v1']]) {
      const refused = await fixture.call('POST', routesOf(shop), { body: route(formats) });
      expect(refused).toMatchObject({ status: 409, code: 'target_too_old' });
      for (const name of ['old-gateway', 'unseen-gateway']) expect(refused.json.detail).toContain(name);
      expect(refused.json.detail).not.toContain('current-gateway');
    }
    await fixture.expect(200, 'POST', `/v1/targets/${unseen}/detach`);
    await seen(old, true);
    await fixture.expect(201, 'POST', routesOf(shop), { body: route(KEYED) });
    // It can always be taken away.
    await seen(old, false);
    const path = `${routesOf(shop)}/orders-read`;
    await fixture.expect(200, 'PUT', path, { body: { definition: ROUTE_DEFINITION }, ifMatch: 1 });
  });
});
