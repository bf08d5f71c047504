import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { clientSigningProfiles } from '../../../src/control/publishing/signing-profiles.ts';
import {
  ALLOWED_SOURCES,
  ApiFixture,
  itemsOf,
  ROUTE_DEFINITION,
  type Shop,
} from '../../support/control/api-fixture.ts';
import { policyRow, sourceRow } from '../../support/control/store-rows.ts';
import { databaseKinds } from '../store/databases.ts';

describe.each(databaseKinds())('$name', (kind) => {
  let fixture: ApiFixture;
  let shop: Shop;

  beforeAll(async () => {
    await kind.start();
    const open = await kind.fresh();
    fixture = await ApiFixture.open({ openStore: (nowMs) => open({ nowMs }) });
    shop = await fixture.shop();
  });
  afterAll(async () => {
    await fixture.close();
    await kind.stop();
  });

  /** Changes that the publisher of the site has not read yet, as `kind reference`. */
  async function pendingChanges(siteId: string): Promise<readonly string[]> {
    const rows = await fixture.store.read((tx) => tx.changes.pending(siteId, 1000));
    return rows.map(({ kind, reference }) => `${kind} ${reference}`.trim());
  }

  describe('clients and grants', () => {
    test('are made, changed and taken away, and the publisher is notified each time', async () => {
      const { siteId } = await fixture.shop('clients');
      const base = `/v1/sites/${siteId}/clients`;
      const made = await fixture.expect(201, 'POST', base, {
        body: { client_id: 'billing', subject: 'client:billing', context: { environment: 'production' } },
      });
      expect(made.json).toMatchObject({ issuer: 'https://control.shop.example/sites/clients', version: 1 });
      const path = `${base}/billing`;
      await fixture.expect(201, 'PUT', `${path}/grants/orders`, { body: { access: 'read' } });
      await fixture.expect(200, 'PUT', `${path}/grants/orders`, { body: { access: 'write' } });
      await fixture.expect(201, 'PUT', `${path}/grants/${encodeURIComponent('a/b')}`, {
        body: { access: 'read' },
      });
      const grants = itemsOf(await fixture.expect(200, 'GET', `${path}/grants`));
      expect(grants.map(({ resource, access }) => [resource, access])).toEqual([
        ['a/b', 'read'],
        ['orders', 'write'],
      ]);
      await fixture.expect(200, 'PATCH', path, { body: { context: {} }, ifMatch: 1 });
      await fixture.expect(204, 'DELETE', `${path}/grants/orders`);
      expect((await fixture.call('DELETE', `${path}/grants/orders`)).code).toBe('not_found');
      await fixture.expect(204, 'DELETE', path, { ifMatch: 2 });
      expect((await fixture.call('GET', `${path}/grants`)).code).toBe('not_found');
      const changes = (await pendingChanges(siteId)).filter((change) => change === 'client billing');
      expect(changes).toHaveLength(7);
    });

    test('those of all clients of a site are listed by client and resource, page by page', async () => {
      const { siteId } = await fixture.shop('all-grants');
      const base = `/v1/sites/${siteId}`;
      for (const name of ['billing', 'reporting']) {
        await fixture.expect(201, 'POST', `${base}/clients`, {
          body: { client_id: name, subject: `client:${name}` },
        });
        for (const resource of ['prices', 'orders']) {
          await fixture.expect(201, 'PUT', `${base}/clients/${name}/grants/${resource}`, {
            body: { access: 'read' },
          });
        }
      }
      const first = await fixture.expect(200, 'GET', `${base}/grants?limit=3`);
      const rest = await fixture.expect(
        200,
        'GET',
        `${base}/grants?cursor=${String(first.json.next_cursor)}`,
      );
      const names = [first, rest].map((page) =>
        itemsOf(page).map(({ client_id, resource }) => `${String(client_id)} ${String(resource)}`),
      );
      expect(names).toEqual([['billing orders', 'billing prices', 'reporting orders'], ['reporting prices']]);
      expect(rest.json.next_cursor).toBeUndefined();
    });

    test('a SPIFFE ID outside the trust domain is refused', async () => {
      const path = `/v1/sites/${shop.siteId}/clients`;
      const body = { client_id: 'x', subject: 'spiffe://other.example/x' };
      const answer = await fixture.call('POST', path, { body });
      expect(answer.code).toBe('definition_invalid');
      expect(answer.json.errors).toMatchObject([{ pointer: '/body/subject' }]);
      const inside = { client_id: 'x', subject: 'spiffe://shop.example/x' };
      await fixture.expect(201, 'POST', path, { body: inside });
      expect((await fixture.call('POST', path, { body: inside })).code).toBe('already_exists');
      const moved = await fixture.call('PATCH', `${path}/x`, {
        body: { subject: 'spiffe://shop.example.evil/x' },
        ifMatch: 1,
      });
      expect(moved.code).toBe('definition_invalid');
    });

    test('a subject that is no canonical SPIFFE ID is refused; one from before stays until it is changed', async () => {
      const { siteId } = await fixture.shop('odd-clients');
      const path = `/v1/sites/${siteId}/clients`;
      for (const subject of ['spiffe://shop.example/a/../b', 'spiffe://shop.example/a/']) {
        const answer = await fixture.call('POST', path, { body: { client_id: 'x', subject } });
        expect(answer).toMatchObject({ status: 422, code: 'definition_invalid' });
        expect(answer.json.errors).toMatchObject([{ pointer: '/body/subject' }]);
      }
      const body = { client_id: 'x', subject: 'spiffe://shop.example/x' };
      await fixture.expect(201, 'POST', path, { body });
      await fixture.store.writeUnaudited({ kind: 'site', siteId }, async (tx) => {
        const row = await tx.clients.find(siteId, 'x');
        if (row !== undefined) await tx.clients.change(row, { subject: 'spiffe://shop.example//x' }, 1);
      });
      await fixture.expect(200, 'PATCH', `${path}/x`, { body: { context: { a: 'b' } }, ifMatch: 2 });
      // A workload's profile omits a route that verifiers deny to it.
      await fixture.expect(201, 'PUT', `${path}/x/grants/r`, { body: { access: 'write' } });
      const routes = `/v1/sites/${siteId}/routes`;
      const route = { route_id: 'r', definition: { ...ROUTE_DEFINITION, resource: 'r' } };
      await fixture.expect(201, 'POST', routes, { body: route });
      const [source] = ALLOWED_SOURCES;
      const issuer = 'https://control.shop.example/sites/odd-clients';
      const allowed = { ...source, issuer, subject_prefix: 'spiffe://shop.example/' };
      const sources = { allowed_sources: [{ ...allowed, subject_exact: undefined }] };
      await fixture.expect(201, 'PUT', `${routes}/r/sources`, { body: sources });
      const profiles = await fixture.store.read((tx) => clientSigningProfiles(tx, siteId, 'x'));
      expect(profiles).toMatchObject([{ route_id: 'r', state: 'inactive' }]);
      const again = { body: { subject: 'spiffe://shop.example//y' }, ifMatch: 3 };
      expect((await fixture.call('PATCH', `${path}/x`, again)).code).toBe('definition_invalid');
    });

    test('a client that a policy names stays, until the policy is deleted', async () => {
      const { siteId } = await fixture.shop('named');
      const path = `/v1/sites/${siteId}/clients/c`;
      await fixture.expect(201, 'POST', `/v1/sites/${siteId}/clients`, {
        body: { client_id: 'c', subject: 'client:c' },
      });
      const source = sourceRow(siteId);
      const policy = policyRow(source, 'c');
      await fixture.store.writeUnaudited({ kind: 'site', siteId }, async (tx) => {
        await tx.sources.add(source);
        await tx.policies.add(policy);
        await tx.policies.change(policy, { state: 'deactivated' }, 1);
      });
      expect((await fixture.call('DELETE', path, { ifMatch: 1 })).code).toBe('still_in_use');
      await fixture.store.writeUnaudited({ kind: 'site', siteId }, (tx) =>
        tx.policies.change({ ...policy, version: 2 }, { state: 'deleted' }, 1),
      );
      await fixture.expect(204, 'DELETE', path, { ifMatch: 1 });
    });

    test('a client of which keys are alive keeps its subject and stays', async () => {
      const { siteId } = await fixture.shop('alive');
      const path = `/v1/sites/${siteId}/clients/c`;
      await fixture.expect(201, 'POST', `/v1/sites/${siteId}/clients`, {
        body: { client_id: 'c', subject: 'client:c' },
      });
      await fixture.store.writeUnaudited({ kind: 'site', siteId }, (tx) =>
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
          expiresAtSeconds: Math.floor(fixture.ms / 1000) + 60,
          verifiedIssuer: 'https://i.example',
          verifiedSubject: 's',
          provenance: '{}',
          revokedAtMs: null,
          revokedBy: null,
          revokedReason: null,
          listedRevision: null,
          revokedRevision: null,
          version: 1,
          createdAtMs: fixture.ms,
          updatedAtMs: fixture.ms,
        }),
      );
      const subject = { body: { subject: 'client:d' }, ifMatch: 1 };
      expect((await fixture.call('PATCH', path, subject)).code).toBe('still_in_use');
      await fixture.expect(200, 'PATCH', path, { body: { context: { a: 'b' } }, ifMatch: 1 });
      expect((await fixture.call('DELETE', path, { ifMatch: 2 })).code).toBe('still_in_use');
      const clock = fixture.ms;
      fixture.ms += 60_000;
      await fixture.expect(204, 'DELETE', path, { ifMatch: 2 });
      fixture.ms = clock;
    });
  });

  describe('routes and their sources', () => {
    test('a route is published with its first sources, and taken out with its last', async () => {
      const { siteId } = await fixture.shop('routed');
      const path = `/v1/sites/${siteId}/routes/orders-read`;
      const before = (await pendingChanges(siteId)).length;
      const body = { route_id: 'orders-read', definition: ROUTE_DEFINITION };
      const made = await fixture.expect(201, 'POST', `/v1/sites/${siteId}/routes`, { body });
      expect(made.json).toMatchObject({ definition: ROUTE_DEFINITION, published: false, version: 1 });
      expect((await fixture.call('POST', `/v1/sites/${siteId}/routes`, { body })).code).toBe(
        'already_exists',
      );
      expect(await pendingChanges(siteId)).toHaveLength(before);
      expect((await fixture.call('GET', `${path}/sources`)).code).toBe('not_found');
      const sources = { allowed_sources: ALLOWED_SOURCES };
      const put = await fixture.expect(201, 'PUT', `${path}/sources`, { body: sources });
      expect(put.json).toMatchObject({ ...sources, version: 1 });
      expect((await fixture.expect(200, 'GET', path)).json).toMatchObject({ published: true, version: 2 });
      expect((await fixture.call('PUT', `${path}/sources`, { body: sources })).code).toBe(
        'precondition_required',
      );
      await fixture.expect(200, 'PUT', `${path}/sources`, { body: sources, ifMatch: 1 });
      const definition = { ...ROUTE_DEFINITION, max_staleness_seconds: 60 };
      await fixture.expect(200, 'PUT', path, { body: { definition }, ifMatch: 2 });
      expect(await pendingChanges(siteId)).toHaveLength(before + 3);
      await fixture.expect(204, 'DELETE', `${path}/sources`, { ifMatch: 2 });
      expect((await fixture.expect(200, 'GET', path)).json).toMatchObject({ published: false, version: 4 });
      await fixture.expect(204, 'DELETE', path, { ifMatch: 4 });
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
      const answer = await fixture.call('POST', `/v1/sites/${shop.siteId}/routes`, { body });
      expect(answer).toMatchObject({ status: 422, code: 'definition_invalid' });
      expect(answer.json.errors).toMatchObject([{ pointer }]);
    });

    test('a passport in a header of its own waits for targets that do not know it', async () => {
      const { siteId } = await fixture.shop('own-header');
      const path = `/v1/sites/${siteId}`;
      const { json } = await fixture.expect(201, 'POST', `${path}/targets`, { body: { name: 'gateway' } });
      const definition = { ...ROUTE_DEFINITION, passport_header: 'X-Proofgate-Passport' };
      const body = { route_id: 'own', definition };
      const refused = await fixture.call('POST', `${path}/routes`, { body });
      expect(refused).toMatchObject({ status: 422, code: 'definition_invalid' });
      const reason = expect.stringContaining('gateway');
      expect(refused.json.errors).toEqual([{ pointer: '/body/definition/passport_header', reason }]);
      await fixture.expect(200, 'POST', `/v1/targets/${String(json.target_id)}/detach`);
      expect((await fixture.expect(201, 'POST', `${path}/routes`, { body })).json).toMatchObject(body);
    });

    test('routes of which a verifier could not tell one from the other are refused', async () => {
      const { siteId } = await fixture.shop('twins');
      const path = `/v1/sites/${siteId}/routes`;
      for (const route_id of ['one', 'two']) {
        await fixture.expect(201, 'POST', path, { body: { route_id, definition: ROUTE_DEFINITION } });
      }
      const body = { allowed_sources: ALLOWED_SOURCES };
      await fixture.expect(201, 'PUT', `${path}/one/sources`, { body });
      const answer = await fixture.call('PUT', `${path}/two/sources`, { body });
      expect(answer).toMatchObject({ status: 422, code: 'definition_invalid' });
      expect((await fixture.call('GET', `${path}/two/sources`)).code).toBe('not_found');
    });

    test('sources that a verifier would not take are refused', async () => {
      const { siteId } = await fixture.shop('sources');
      await fixture.expect(201, 'POST', `/v1/sites/${siteId}/routes`, {
        body: { route_id: 'r', definition: ROUTE_DEFINITION },
      });
      const [source] = ALLOWED_SOURCES;
      for (const change of [
        { subject_prefix: 'client:' },
        { subject_exact: undefined, subject_prefix: 'client' },
        { subject_exact: 'spiffe://other.example/x' },
      ]) {
        const body = { allowed_sources: [{ ...source, ...change }] };
        const answer = await fixture.call('PUT', `/v1/sites/${siteId}/routes/r/sources`, { body });
        expect(answer).toMatchObject({ status: 422, code: 'definition_invalid' });
      }
      expect(
        (await fixture.call('PUT', `/v1/sites/${siteId}/routes/r/sources`, { body: { allowed_sources: [] } }))
          .code,
      ).toBe('request_malformed');
    });
  });

  test('sources that are no canonical SPIFFE IDs are refused; those from before leave the site as it was', async () => {
    const { siteId } = await fixture.shop('odd-sources');
    const routes = `/v1/sites/${siteId}/routes`;
    const body = (change: object) => ({ body: { allowed_sources: [{ ...ALLOWED_SOURCES[0], ...change }] } });
    for (const [route_id, path_template] of [
      ['old', '/v1/old'],
      ['new', '/v1/new'],
    ]) {
      const definition = { ...ROUTE_DEFINITION, path_template };
      await fixture.expect(201, 'POST', routes, { body: { route_id, definition } });
    }
    const odd = { subject_exact: undefined, subject_prefix: 'spiffe://shop.example/ns/../' };
    const answer = await fixture.call('PUT', `${routes}/old/sources`, body(odd));
    expect(answer).toMatchObject({ status: 422, code: 'definition_invalid' });
    expect(answer.json.errors).toMatchObject([{ pointer: '/body/allowed_sources/0/subject_prefix' }]);
    expect((await fixture.call('GET', `${routes}/old/sources`)).code).toBe('not_found');
    await fixture.expect(201, 'PUT', `${routes}/old/sources`, body({}));
    await fixture.store.writeUnaudited({ kind: 'site', siteId }, async (tx) => {
      const row = await tx.routeSources.find(siteId, 'old');
      const kept = JSON.stringify(body(odd).body.allowed_sources);
      if (row !== undefined) await tx.routeSources.change(row, { allowedSources: kept }, 1);
    });
    await fixture.expect(201, 'PUT', `${routes}/new/sources`, body({}));
  });
});
