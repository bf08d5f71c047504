import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { tokenHash } from '../../../src/control/secrets/bearer-token.ts';
import type { ControlStore } from '../../../src/control/store/port.ts';
import { databaseKinds } from '../store/databases.ts';
import { challengeRow, enrollmentRow, keyRow, policyRow, revisionRow, sourceRow } from '../store/rows.ts';
import {
  ALLOWED_SOURCES,
  ApiWorld,
  itemsOf,
  ROUTE_DEFINITION,
  type Shop,
  SITE_BODY,
  textIn,
} from './world.ts';

/** What is left of a site that was used: ended policies, keys and sources, and what was published. */
async function leaveTracesIn(store: ControlStore, siteId: string): Promise<void> {
  const source = sourceRow(siteId);
  const policy = { ...policyRow(source, 'c'), state: 'deleted' as const };
  const key = keyRow(siteId, { expiresAtSeconds: 1 });
  await store.housekeep({ kind: 'site', siteId }, async (tx) => {
    await tx.sources.add(source);
    await tx.sources.addRevision(revisionRow(source, 1, 'retired'));
    await tx.sources.putKeySet({ sourceId: source.id, revision: 1, jwks: '{}', fetchedAtMs: 1 });
    await tx.sources.claimAudience(`audience of ${siteId}`, siteId);
    await tx.policies.add(policy);
    await tx.enrollments.addChallenge(challengeRow(siteId, policy.id));
    await tx.enrollments.add(enrollmentRow(policy, { state: 'issued', keyId: key.keyId }));
    await tx.keys.add(key);
    await tx.keys.refusePublicKey(siteId, 'revoked-thumbprint', 1);
    await tx.keys.blockSubject({ siteId, issuer: 'i', subject: 's', blockedAtMs: 1, blockedBy: 'x' });
    await tx.distribution.putFreshness({ siteId, revision: 1, head: 'h', asOfSeconds: 1, document: 'd' });
  });
}

describe.each(databaseKinds())('$name', (kind) => {
  let world: ApiWorld;
  let shop: Shop;

  beforeAll(async () => {
    await kind.start();
    const open = await kind.fresh();
    world = await ApiWorld.open({ openStore: (nowMs) => open({ nowMs }) });
    shop = await world.shop();
  });
  afterAll(async () => {
    await world.close();
    await kind.stop();
  });

  /** What the site's publisher has not seen yet, as `kind reference`. */
  async function pendingChanges(siteId: string): Promise<readonly string[]> {
    const rows = await world.store.read((tx) => tx.changes.pending(siteId, 1000));
    return rows.map(({ kind, reference }) => `${kind} ${reference}`.trim());
  }

  describe('environments and fleets', () => {
    test('are made, read, renamed, listed and deleted', async () => {
      const made = await world.expect(201, 'POST', '/v1/environments', { body: { name: 'staging' } });
      const id = textIn(made, 'environment_id');
      expect(made.headers.location).toBe(`/v1/environments/${id}`);
      expect(made.headers.etag).toBe('"1"');
      const renamed = await world.expect(200, 'PATCH', `/v1/environments/${id}`, {
        body: { name: 'staging 2' },
        ifMatch: 1,
      });
      expect(renamed.json).toMatchObject({ name: 'staging 2', version: 2 });
      const fleet = await world.expect(201, 'POST', `/v1/environments/${id}/fleets`, { body: { name: 'a' } });
      const fleetId = textIn(fleet, 'fleet_id');
      expect(itemsOf(await world.expect(200, 'GET', `/v1/environments/${id}/fleets`))).toEqual([fleet.json]);
      expect((await world.call('DELETE', `/v1/environments/${id}`, { ifMatch: 2 })).code).toBe(
        'still_in_use',
      );
      await world.expect(200, 'PATCH', `/v1/fleets/${fleetId}`, { body: { name: 'b' }, ifMatch: 1 });
      await world.expect(204, 'DELETE', `/v1/fleets/${fleetId}`, { ifMatch: 2 });
      await world.expect(204, 'DELETE', `/v1/environments/${id}`, { ifMatch: 2 });
      expect((await world.call('GET', `/v1/environments/${id}`)).code).toBe('not_found');
    });

    test('names are taken once among siblings', async () => {
      const again = await world.call('POST', '/v1/environments', { body: { name: 'shop-eu-1' } });
      expect(again.code).toBe('already_exists');
      const path = `/v1/environments/${shop.environmentId}/fleets`;
      expect((await world.call('POST', path, { body: { name: 'shop-eu-1' } })).code).toBe('already_exists');
      const other = await world.expect(201, 'POST', path, { body: { name: 'other' } });
      const taken = await world.call('PATCH', `/v1/fleets/${textIn(other, 'fleet_id')}`, {
        body: { name: 'shop-eu-1' },
        ifMatch: 1,
      });
      expect(taken.code).toBe('already_exists');
    });

    test('cannot go while roles are granted on them', async () => {
      const made = await world.expect(201, 'POST', '/v1/environments', { body: { name: 'held' } });
      const id = textIn(made, 'environment_id');
      const grant = await world.expect(201, 'POST', '/v1/role-grants', {
        body: { principal: 'group:ops', role: 'viewer', scope: { kind: 'environment', id } },
      });
      expect((await world.call('DELETE', `/v1/environments/${id}`, { ifMatch: 1 })).code).toBe(
        'still_in_use',
      );
      await world.expect(204, 'DELETE', `/v1/role-grants/${textIn(grant, 'role_grant_id')}`);
      await world.expect(204, 'DELETE', `/v1/environments/${id}`, { ifMatch: 1 });
    });
  });

  describe('sites', () => {
    const path = () => `/v1/fleets/${shop.fleetId}/sites`;

    test('are made with defaults and two signing keys, and are on their way to the publisher', async () => {
      const site = await world.expect(200, 'GET', `/v1/sites/${shop.siteId}`);
      expect(site.json).toMatchObject({
        environment_id: shop.environmentId,
        fleet_id: shop.fleetId,
        skew_seconds: 5,
        single_verifier: false,
        bundle_lifetime_seconds: 2_592_000,
        source_capacity: 16,
        version: 1,
      });
      const keys = itemsOf(await world.expect(200, 'GET', `/v1/sites/${shop.siteId}/signing-keys`));
      expect(keys.map(({ purpose, state }) => `${String(purpose)} ${String(state)}`).sort()).toEqual([
        'bundle active',
        'freshness active',
      ]);
      expect(await pendingChanges(shop.siteId)).toContain('policy');
    });

    test.each([
      ['an origin with a slash at its end', { origins: ['https://api.shop.example/'] }, '/body/origins/0'],
      ['an origin in capitals', { origins: ['https://API.shop.example'] }, '/body/origins/0'],
      [
        'an origin with the default port',
        { origins: ['https://a.example', 'https://b.example:443'] },
        '/body/origins/1',
      ],
      ['an issuer with a query', { issuer_url: 'https://control.example/?a=1' }, '/body/issuer_url'],
      ['an issuer in capitals', { issuer_url: 'https://Control.example/' }, '/body/issuer_url'],
      ['an issuer with credentials', { issuer_url: 'https://a:b@control.example/' }, '/body/issuer_url'],
    ])('%s is refused', async (_what, change, pointer) => {
      const body = { ...SITE_BODY, site_id: 'x', issuer_url: 'https://x.example', ...change };
      const answer = await world.call('POST', path(), { body });
      expect(answer).toMatchObject({ status: 422, code: 'definition_invalid' });
      expect(answer.json.errors).toMatchObject([{ pointer }]);
    });

    test.each(['..', '.', 'with space', 'ü', '', 'x'.repeat(513)])(
      'site_id %p is refused',
      async (site_id) => {
        const body = { ...SITE_BODY, site_id, issuer_url: 'https://x.example' };
        const answer = await world.call('POST', path(), { body });
        expect(answer).toMatchObject({ status: 400, code: 'request_malformed' });
        expect(answer.json.errors).toMatchObject([{ pointer: '/body/site_id' }]);
      },
    );

    test('identifier and issuer are taken once', async () => {
      const sameId = { ...SITE_BODY, issuer_url: 'https://y.example' };
      expect((await world.call('POST', path(), { body: sameId })).code).toBe('already_exists');
      const sameIssuer = { ...SITE_BODY, site_id: 'another' };
      expect((await world.call('POST', path(), { body: sameIssuer })).code).toBe('already_exists');
    });

    test('an identifier with slashes and percent signs is one step of a path', async () => {
      const site_id = 'a/b%2Fc?d#e';
      const body = { ...SITE_BODY, site_id, issuer_url: 'https://odd.example' };
      const made = await world.expect(201, 'POST', path(), { body });
      const location = String(made.headers.location);
      expect((await world.expect(200, 'GET', location)).json.site_id).toBe(site_id);
      await world.expect(204, 'DELETE', location, { ifMatch: 1 });
    });

    test('trust domain and issuer are fixed', async () => {
      for (const member of ['trust_domain', 'issuer_url', 'site_id']) {
        const answer = await world.call('PATCH', `/v1/sites/${shop.siteId}`, {
          body: { [member]: 'shop.example' },
          ifMatch: 1,
        });
        expect(answer.code).toBe('request_malformed');
        expect(answer.json.errors).toMatchObject([{ pointer: `/body/${member}`, reason: 'unknown member' }]);
      }
    });

    test('what bundles hold goes to the publisher; a name does not', async () => {
      const { siteId } = await world.shop('patched');
      const before = (await pendingChanges(siteId)).length;
      await world.expect(200, 'PATCH', `/v1/sites/${siteId}`, {
        body: { display_name: 'Another', source_capacity: 3 },
        ifMatch: 1,
      });
      expect(await pendingChanges(siteId)).toHaveLength(before);
      const changed = await world.expect(200, 'PATCH', `/v1/sites/${siteId}`, {
        body: { origins: ['https://api2.shop.example'], skew_seconds: 9, single_verifier: true },
        ifMatch: 2,
      });
      expect(changed.json).toMatchObject({ origins: ['https://api2.shop.example'], version: 3 });
      expect(await pendingChanges(siteId)).toHaveLength(before + 1);
    });

    test('origins that a published route needs stay', async () => {
      const { siteId } = await world.shop('narrowed');
      const definition = { ...ROUTE_DEFINITION, origins: ['https://api.shop.example'] };
      await world.expect(201, 'POST', `/v1/sites/${siteId}/routes`, { body: { route_id: 'r', definition } });
      await world.expect(201, 'PUT', `/v1/sites/${siteId}/routes/r/sources`, {
        body: { allowed_sources: ALLOWED_SOURCES },
      });
      const answer = await world.call('PATCH', `/v1/sites/${siteId}`, {
        body: { origins: ['https://elsewhere.example'] },
        ifMatch: 1,
      });
      expect(answer).toMatchObject({ status: 422, code: 'definition_invalid' });
      expect((await world.expect(200, 'GET', `/v1/sites/${siteId}`)).json.version).toBe(1);
    });

    test('can go once nothing is left on them, with all that was kept', async () => {
      const { siteId, fleetId } = await world.shop('gone');
      const target = await world.expect(201, 'POST', `/v1/sites/${siteId}/targets`, { body: { name: 't' } });
      await world.expect(201, 'POST', `/v1/sites/${siteId}/clients`, {
        body: { client_id: 'c', subject: 'client:c' },
      });
      const remove = () => world.call('DELETE', `/v1/sites/${siteId}`, { ifMatch: 1 });
      expect(await remove()).toMatchObject({ code: 'still_in_use' });
      expect((await world.call('DELETE', `/v1/fleets/${fleetId}`, { ifMatch: 1 })).code).toBe('still_in_use');
      await world.expect(204, 'DELETE', `/v1/sites/${siteId}/clients/c`, { ifMatch: 1 });
      await world.expect(200, 'POST', `/v1/targets/${textIn(target, 'target_id')}/detach`);
      await leaveTracesIn(world.store, siteId);
      const grant = await world.expect(201, 'POST', '/v1/access-tokens', {
        body: { name: 'ci', role: 'viewer', scope: { kind: 'site', id: siteId } },
      });
      expect(await remove()).toMatchObject({ code: 'still_in_use' });
      await world.expect(204, 'DELETE', `/v1/access-tokens/${textIn(grant, 'access_token_id')}`, {
        ifMatch: 1,
      });
      expect((await remove()).status).toBe(204);
      expect((await world.call('GET', `/v1/sites/${siteId}`)).code).toBe('not_found');
      await world.store.read(async (tx) => {
        expect(await tx.signingKeys.ofSite(siteId)).toEqual([]);
        expect(await tx.distribution.freshness(siteId)).toBeUndefined();
        expect(await tx.sources.ownerOfAudience(`audience of ${siteId}`)).toBeUndefined();
        // A site of the same name would go on refusing them.
        expect(await tx.keys.publicKeyWasRevoked(siteId, 'revoked-thumbprint')).toBe(true);
      });
      expect(await pendingChanges(siteId)).toEqual([]);
    });
  });

  describe('signing keys', () => {
    test('rotate with both signing for a while', async () => {
      const { siteId } = await world.shop('rotating');
      const rotated = await world.expect(201, 'POST', `/v1/sites/${siteId}/signing-keys/rotate`, {
        body: { purpose: 'bundle', retiring_seconds: 600 },
      });
      const keys = itemsOf(await world.expect(200, 'GET', `/v1/sites/${siteId}/signing-keys`));
      const bundle = keys.filter(({ purpose }) => purpose === 'bundle');
      expect(bundle.map(({ state }) => state).sort()).toEqual(['active', 'retiring']);
      expect(bundle.find(({ state }) => state === 'active')).toEqual(rotated.json);
      expect(bundle.find(({ state }) => state === 'retiring')?.retire_at).toBe(
        new Date(world.ms + 600_000).toISOString(),
      );
      expect(keys.filter(({ purpose }) => purpose === 'freshness')).toHaveLength(1);
    });
  });

  describe('targets', () => {
    test('a token is shown once, kept as a hash, and rotates with an overlap', async () => {
      const { siteId } = await world.shop('targeted');
      const made = await world.expect(201, 'POST', `/v1/sites/${siteId}/targets`, {
        body: { name: 'eu-1a' },
      });
      const id = textIn(made, 'target_id');
      const first = textIn(made, 'token');
      expect((await world.expect(200, 'GET', `/v1/targets/${id}`)).json.token).toBeUndefined();
      const rotated = await world.expect(200, 'POST', `/v1/targets/${id}/rotate-token`, {
        body: { overlap_seconds: 60 },
      });
      const second = textIn(rotated, 'token');
      const isGood = async (token: string, atMs: number) => {
        return (await world.store.read((tx) => tx.targets.byTokenHash(tokenHash(token), atMs)))?.id === id;
      };
      expect(await isGood(first, world.ms + 59_999)).toBe(true);
      expect(await isGood(first, world.ms + 60_000)).toBe(false);
      expect(await isGood(second, world.ms + 60_000)).toBe(true);
      await world.expect(200, 'POST', `/v1/targets/${id}/rotate-token`, { body: { overlap_seconds: 0 } });
      expect(await isGood(second, world.ms)).toBe(false);
      await world.expect(200, 'PATCH', `/v1/targets/${id}`, { body: { name: 'eu-1b' }, ifMatch: 3 });
      const detached = await world.expect(200, 'POST', `/v1/targets/${id}/detach`);
      expect(detached.json.state).toBe('detached');
      for (const action of ['detach', 'rotate-token']) {
        const body = action === 'detach' ? {} : { body: {} };
        expect((await world.call('POST', `/v1/targets/${id}/${action}`, body)).code).toBe(
          'target_state_conflict',
        );
      }
      expect(itemsOf(await world.expect(200, 'GET', `/v1/sites/${siteId}/targets`))).toEqual([detached.json]);
    });
  });

  describe('clients and grants', () => {
    test('are made, changed and taken away, each time told to the publisher', async () => {
      const { siteId } = await world.shop('clients');
      const base = `/v1/sites/${siteId}/clients`;
      const made = await world.expect(201, 'POST', base, {
        body: { client_id: 'billing', subject: 'client:billing', context: { environment: 'production' } },
      });
      expect(made.json).toMatchObject({ issuer: 'https://control.shop.example/sites/clients', version: 1 });
      const path = `${base}/billing`;
      await world.expect(201, 'PUT', `${path}/grants/orders`, { body: { access: 'read' } });
      await world.expect(200, 'PUT', `${path}/grants/orders`, { body: { access: 'write' } });
      await world.expect(201, 'PUT', `${path}/grants/${encodeURIComponent('a/b')}`, {
        body: { access: 'read' },
      });
      const grants = itemsOf(await world.expect(200, 'GET', `${path}/grants`));
      expect(grants.map(({ resource, access }) => [resource, access])).toEqual([
        ['a/b', 'read'],
        ['orders', 'write'],
      ]);
      await world.expect(200, 'PATCH', path, { body: { context: {} }, ifMatch: 1 });
      await world.expect(204, 'DELETE', `${path}/grants/orders`);
      expect((await world.call('DELETE', `${path}/grants/orders`)).code).toBe('not_found');
      await world.expect(204, 'DELETE', path, { ifMatch: 2 });
      expect((await world.call('GET', `${path}/grants`)).code).toBe('not_found');
      const changes = (await pendingChanges(siteId)).filter((change) => change === 'client billing');
      expect(changes).toHaveLength(7);
    });

    test('a SPIFFE ID outside the trust domain is refused', async () => {
      const path = `/v1/sites/${shop.siteId}/clients`;
      const body = { client_id: 'x', subject: 'spiffe://other.example/x' };
      const answer = await world.call('POST', path, { body });
      expect(answer.code).toBe('definition_invalid');
      expect(answer.json.errors).toMatchObject([{ pointer: '/body/subject' }]);
      const inside = { client_id: 'x', subject: 'spiffe://shop.example/x' };
      await world.expect(201, 'POST', path, { body: inside });
      expect((await world.call('POST', path, { body: inside })).code).toBe('already_exists');
      const moved = await world.call('PATCH', `${path}/x`, {
        body: { subject: 'spiffe://shop.example.evil/x' },
        ifMatch: 1,
      });
      expect(moved.code).toBe('definition_invalid');
    });

    test('a client that a policy names stays, until the policy is deleted', async () => {
      const { siteId } = await world.shop('named');
      const path = `/v1/sites/${siteId}/clients/c`;
      await world.expect(201, 'POST', `/v1/sites/${siteId}/clients`, {
        body: { client_id: 'c', subject: 'client:c' },
      });
      const source = sourceRow(siteId);
      const policy = policyRow(source, 'c');
      await world.store.housekeep({ kind: 'site', siteId }, async (tx) => {
        await tx.sources.add(source);
        await tx.policies.add(policy);
        await tx.policies.change(policy, { state: 'deactivated' }, 1);
      });
      expect((await world.call('DELETE', path, { ifMatch: 1 })).code).toBe('still_in_use');
      await world.store.housekeep({ kind: 'site', siteId }, (tx) =>
        tx.policies.change({ ...policy, version: 2 }, { state: 'deleted' }, 1),
      );
      await world.expect(204, 'DELETE', path, { ifMatch: 1 });
    });

    test('a client of which keys are alive keeps its subject and stays', async () => {
      const { siteId } = await world.shop('alive');
      const path = `/v1/sites/${siteId}/clients/c`;
      await world.expect(201, 'POST', `/v1/sites/${siteId}/clients`, {
        body: { client_id: 'c', subject: 'client:c' },
      });
      await world.store.housekeep({ kind: 'site', siteId }, (tx) =>
        tx.keys.add({
          keyId: 'dk_alive',
          siteId,
          clientId: 'c',
          policyId: 'ep_x',
          enrollmentId: 'enr_x',
          sourceId: 'tas_x',
          sourceRevision: 1,
          publicJwk: '{}',
          thumbprint: 'x',
          status: 'active',
          expiresAtSeconds: Math.floor(world.ms / 1000) + 60,
          verifiedIssuer: 'https://i.example',
          verifiedSubject: 's',
          provenance: '{}',
          revokedAtMs: null,
          revokedBy: null,
          revokedReason: null,
          listedRevision: null,
          revokedRevision: null,
          version: 1,
          createdAtMs: world.ms,
          updatedAtMs: world.ms,
        }),
      );
      const subject = { body: { subject: 'client:d' }, ifMatch: 1 };
      expect((await world.call('PATCH', path, subject)).code).toBe('still_in_use');
      await world.expect(200, 'PATCH', path, { body: { context: { a: 'b' } }, ifMatch: 1 });
      expect((await world.call('DELETE', path, { ifMatch: 2 })).code).toBe('still_in_use');
      const clock = world.ms;
      world.ms += 60_000;
      await world.expect(204, 'DELETE', path, { ifMatch: 2 });
      world.ms = clock;
    });
  });

  describe('routes and their sources', () => {
    test('a route is published with its first sources, and taken out with its last', async () => {
      const { siteId } = await world.shop('routed');
      const path = `/v1/sites/${siteId}/routes/orders-read`;
      const before = (await pendingChanges(siteId)).length;
      const body = { route_id: 'orders-read', definition: ROUTE_DEFINITION };
      const made = await world.expect(201, 'POST', `/v1/sites/${siteId}/routes`, { body });
      expect(made.json).toMatchObject({ definition: ROUTE_DEFINITION, published: false, version: 1 });
      expect((await world.call('POST', `/v1/sites/${siteId}/routes`, { body })).code).toBe('already_exists');
      expect(await pendingChanges(siteId)).toHaveLength(before);
      expect((await world.call('GET', `${path}/sources`)).code).toBe('not_found');
      const sources = { allowed_sources: ALLOWED_SOURCES };
      const put = await world.expect(201, 'PUT', `${path}/sources`, { body: sources });
      expect(put.json).toMatchObject({ ...sources, version: 1 });
      expect((await world.expect(200, 'GET', path)).json).toMatchObject({ published: true, version: 2 });
      expect((await world.call('PUT', `${path}/sources`, { body: sources })).code).toBe(
        'precondition_required',
      );
      await world.expect(200, 'PUT', `${path}/sources`, { body: sources, ifMatch: 1 });
      const definition = { ...ROUTE_DEFINITION, max_staleness_seconds: 60 };
      await world.expect(200, 'PUT', path, { body: { definition }, ifMatch: 2 });
      expect(await pendingChanges(siteId)).toHaveLength(before + 3);
      await world.expect(204, 'DELETE', `${path}/sources`, { ifMatch: 2 });
      expect((await world.expect(200, 'GET', path)).json).toMatchObject({ published: false, version: 4 });
      await world.expect(204, 'DELETE', path, { ifMatch: 4 });
      expect(await pendingChanges(siteId)).toHaveLength(before + 4);
    });

    test.each([
      [
        'bounded without a bound',
        { max_staleness_seconds: undefined },
        '/body/definition/max_staleness_seconds',
      ],
      ['a template that is none', { path_template: '/a/{b*}/c' }, '/body/definition/path_template'],
      ['a foreign origin', { origins: ['https://other.example'] }, '/body/definition/origins/0'],
      [
        'a header that cannot be signed',
        { signed_headers: ['authorization'] },
        '/body/definition/signed_headers/0',
      ],
    ])('%s is refused where it stands', async (_what, change, pointer) => {
      const body = { route_id: 'faulty', definition: { ...ROUTE_DEFINITION, ...change } };
      const answer = await world.call('POST', `/v1/sites/${shop.siteId}/routes`, { body });
      expect(answer).toMatchObject({ status: 422, code: 'definition_invalid' });
      expect(answer.json.errors).toMatchObject([{ pointer }]);
    });

    test('routes of which a verifier could not tell one from the other are refused', async () => {
      const { siteId } = await world.shop('twins');
      const path = `/v1/sites/${siteId}/routes`;
      for (const route_id of ['one', 'two']) {
        await world.expect(201, 'POST', path, { body: { route_id, definition: ROUTE_DEFINITION } });
      }
      const body = { allowed_sources: ALLOWED_SOURCES };
      await world.expect(201, 'PUT', `${path}/one/sources`, { body });
      const answer = await world.call('PUT', `${path}/two/sources`, { body });
      expect(answer).toMatchObject({ status: 422, code: 'definition_invalid' });
      expect((await world.call('GET', `${path}/two/sources`)).code).toBe('not_found');
    });

    test('sources that a verifier would not take are refused', async () => {
      const { siteId } = await world.shop('sources');
      await world.expect(201, 'POST', `/v1/sites/${siteId}/routes`, {
        body: { route_id: 'r', definition: ROUTE_DEFINITION },
      });
      const [source] = ALLOWED_SOURCES;
      for (const change of [
        { subject_prefix: 'client:' },
        { subject_exact: undefined, subject_prefix: 'client' },
        { subject_exact: 'spiffe://other.example/x' },
      ]) {
        const body = { allowed_sources: [{ ...source, ...change }] };
        const answer = await world.call('PUT', `/v1/sites/${siteId}/routes/r/sources`, { body });
        expect(answer).toMatchObject({ status: 422, code: 'definition_invalid' });
      }
      expect(
        (await world.call('PUT', `/v1/sites/${siteId}/routes/r/sources`, { body: { allowed_sources: [] } }))
          .code,
      ).toBe('request_malformed');
    });
  });

  describe('brokers', () => {
    const definition = {
      trust_domain: 'shop.example',
      subject_prefixes: ['spiffe://shop.example/'],
      key_binding: 'attested_workload',
      keys: [
        {
          kid: 'broker-1',
          alg: 'Ed25519',
          jwk: { kty: 'OKP', crv: 'Ed25519', x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo' },
        },
      ],
    };

    test('are trusted, changed and trusted no longer', async () => {
      const { siteId } = await world.shop('brokered');
      const path = `/v1/sites/${siteId}/brokers/${encodeURIComponent('https://broker.shop.example')}`;
      const made = await world.expect(201, 'PUT', path, { body: { definition } });
      expect(made.json).toMatchObject({ issuer: 'https://broker.shop.example', definition, version: 1 });
      expect((await world.call('PUT', path, { body: { definition } })).code).toBe('precondition_required');
      await world.expect(200, 'PUT', path, {
        body: { definition: { ...definition, max_passport_ttl_seconds: 60 } },
        ifMatch: 1,
      });
      expect(itemsOf(await world.expect(200, 'GET', `/v1/sites/${siteId}/brokers`))).toHaveLength(1);
      await world.expect(204, 'DELETE', path, { ifMatch: 2 });
      expect((await world.call('GET', path)).code).toBe('not_found');
      expect((await world.call('PUT', path, { body: { definition }, ifMatch: 2 })).code).toBe(
        'precondition_failed',
      );
    });

    test('neither the site’s own issuer nor a key that is none', async () => {
      const own = `/v1/sites/${shop.siteId}/brokers/${encodeURIComponent(SITE_BODY.issuer_url)}`;
      expect((await world.call('PUT', own, { body: { definition } })).code).toBe('definition_invalid');
      const path = `/v1/sites/${shop.siteId}/brokers/${encodeURIComponent('https://b.example')}`;
      const jwk = { kty: 'OKP', crv: 'Ed25519', x: Buffer.alloc(32).toString('base64url') };
      const keys = [{ ...definition.keys[0], jwk }];
      expect((await world.call('PUT', path, { body: { definition: { ...definition, keys } } })).code).toBe(
        'definition_invalid',
      );
      const secret = [{ ...definition.keys[0], jwk: { ...definition.keys[0]?.jwk, d: 'AAAA' } }];
      const answer = await world.call('PUT', path, { body: { definition: { ...definition, keys: secret } } });
      expect(answer.code).toBe('request_malformed');
    });
  });
});
