/** Tests role grants, access tokens and the audit trail: who may grant a role, and who sees which events. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { INSTALLATION, type Scope } from '../../../src/control/domain/roles.ts';
import { tokenHash } from '../../../src/control/secrets/bearer-token.ts';
import {
  ALLOWED_SOURCES,
  type Answer,
  ApiFixture,
  itemsOf,
  PUBLIC_ORIGIN,
  ROUTE_DEFINITION,
  type Shop,
  textIn,
} from '../../support/control/api-fixture.ts';
import { databaseKinds } from '../store/databases.ts';

describe.each(databaseKinds())('$name', (kind) => {
  let fixture: ApiFixture;
  let shop: Shop;
  let other: Shop;

  beforeAll(async () => {
    await kind.start();
    const open = await kind.fresh();
    fixture = await ApiFixture.open({ openStore: (nowMs) => open({ nowMs }) });
    shop = await fixture.shop('ours');
    other = await fixture.shop('theirs');
  });
  afterAll(async () => {
    await fixture.close();
    await kind.stop();
  });

  const siteScope = (id: string): Scope => ({ kind: 'site', id });

  function grant(principal: string, scope: unknown, role = 'viewer'): Promise<Answer> {
    return fixture.call('POST', '/v1/role-grants', { body: { principal, role, scope } });
  }

  describe('role grants', () => {
    test('are given once, shown, and taken back', async () => {
      const scope = siteScope(shop.siteId);
      const made = await grant('oidc:https://login.example|ada lovelace', scope, 'operator');
      expect(made).toMatchObject({
        status: 201,
        json: {
          role: 'operator',
          scope,
          created_by: 'token:root',
          created_at: new Date(fixture.ms).toISOString(),
        },
      });
      expect((await grant('oidc:https://login.example|ada lovelace', scope, 'operator')).code).toBe(
        'already_exists',
      );
      expect((await grant('oidc:https://login.example|ada lovelace', scope, 'viewer')).status).toBe(201);
      const path = String(made.headers.location);
      expect((await fixture.expect(200, 'GET', path)).json).toEqual(made.json);
      await fixture.expect(204, 'DELETE', path);
      expect((await fixture.call('DELETE', path)).code).toBe('not_found');
    });

    test.each(['ada', 'oidc:https://login.example', 'group:', 'oidc:|x', 'user:x', 'group:a\nb'])(
      'the principal %p is none',
      async (principal) => {
        expect((await grant(principal, { kind: 'installation' })).code).toBe('request_malformed');
      },
    );

    test.each([
      [{ kind: 'site', id: 'nowhere' }],
      [{ kind: 'site' }],
      [{ kind: 'installation', id: 'x' }],
      [{ kind: 'fleet', id: 'ours' }],
    ])('the scope %p is none', async (scope) => {
      expect(await grant('group:x', scope)).toMatchObject({ status: 422, code: 'scope_invalid' });
    });
  });

  describe('access tokens', () => {
    const make = (body: object) => fixture.call('POST', '/v1/access-tokens', { body });

    test('expire when they say, rotate at once, and end', async () => {
      const scope = siteScope(shop.siteId);
      const expires_at = new Date(fixture.ms + 3_600_000).toISOString();
      const made = await make({ name: 'ci', role: 'approver', scope, expires_at });
      expect(made).toMatchObject({ status: 201, json: { name: 'ci', role: 'approver', scope, expires_at } });
      const first = textIn(made, 'token');
      const path = String(made.headers.location);
      const shown = await fixture.expect(200, 'GET', path);
      expect(shown.json).toMatchObject({ created_by: 'token:root' });
      expect(shown.json).not.toHaveProperty('last_used_at');
      const used = new Map([[String(made.json.access_token_id), fixture.ms + 5000]]);
      await fixture.store.writeUnaudited(undefined, (tx) => tx.operators.noteTokensUsed(used));
      expect((await fixture.expect(200, 'GET', path)).json).toMatchObject({
        last_used_at: new Date(fixture.ms + 5000).toISOString(),
      });
      const holder = (token: string) =>
        fixture.store.read((tx) => tx.operators.tokenByHash(tokenHash(token)));
      expect((await holder(first))?.expiresAtMs).toBe(fixture.ms + 3_600_000);
      const rotated = await fixture.expect(200, 'POST', `${path}/rotate`);
      expect(await holder(first)).toBeUndefined();
      expect((await holder(textIn(rotated, 'token')))?.id).toBe(made.json.access_token_id);
      expect((await fixture.call('DELETE', path)).code).toBe('precondition_required');
      expect((await fixture.call('DELETE', path, { ifMatch: 1 })).code).toBe('precondition_failed');
      await fixture.expect(204, 'DELETE', path, { ifMatch: 2 });
      expect(await holder(textIn(rotated, 'token'))).toBeUndefined();
      expect((await fixture.call('GET', path)).code).toBe('not_found');
    });

    test('that a token makes or rotates end with that token', async () => {
      const scope = siteScope(shop.siteId);
      const end = fixture.ms + 3_600_000;
      const parent = fixture.operators.add(
        'parent',
        [{ role: 'admin', scope: INSTALLATION }],
        'access_token',
        end,
      );
      const makeWith = (expiresAtMs?: number) =>
        fixture.call('POST', '/v1/access-tokens', {
          token: parent,
          body: {
            ...{ name: 'child', role: 'admin', scope },
            ...(expiresAtMs === undefined ? {} : { expires_at: new Date(expiresAtMs).toISOString() }),
          },
        });
      const later = await makeWith(end + 1);
      expect(later).toMatchObject({ status: 422, code: 'definition_invalid' });
      expect(later.json.errors).toMatchObject([{ pointer: '/body/expires_at' }]);
      expect((await makeWith(end)).status).toBe(201);
      const unsaid = await makeWith();
      expect(unsaid).toMatchObject({ status: 201, json: { expires_at: new Date(end).toISOString() } });
      expect(
        (await fixture.call('POST', `${unsaid.headers.location}/rotate`, { token: parent })).status,
      ).toBe(200);
      const lasting = await make({ name: 'lasting', role: 'viewer', scope });
      const rotated = await fixture.call('POST', `${lasting.headers.location}/rotate`, { token: parent });
      expect(rotated).toMatchObject({ status: 422, code: 'definition_invalid' });
      const session = fixture.operators.add(
        'human',
        [{ role: 'admin', scope: INSTALLATION }],
        'session',
        end,
      );
      const bySession = await fixture.call('POST', '/v1/access-tokens', {
        token: '',
        body: { name: 'x', role: 'viewer', scope },
        headers: { cookie: `proofgate_session=${session}`, origin: PUBLIC_ORIGIN },
      });
      expect(bySession.status).toBe(201);
      expect(bySession.json.expires_at).toBeUndefined();
    });

    test('that are over, or of no moment, are not made', async () => {
      const scope = siteScope(shop.siteId);
      const over = await make({
        name: 'x',
        role: 'viewer',
        scope,
        expires_at: new Date(fixture.ms).toISOString(),
      });
      expect(over.code).toBe('definition_invalid');
      for (const expires_at of ['tomorrow', '2026-13-01T00:00:00Z', '2035-12-31T23:59:60Z', 5]) {
        expect((await make({ name: 'x', role: 'viewer', scope, expires_at })).code).toBe('request_malformed');
      }
      expect((await make({ name: 'x', role: 'viewer', scope: siteScope('nowhere') })).code).toBe(
        'scope_invalid',
      );
    });
  });

  describe('lists hold what one may read, and no more', () => {
    const ids = async (path: string, member: string, token: string) => {
      const seen: unknown[] = [];
      for (let query = '?limit=1'; ; ) {
        const answer = await fixture.expect(200, 'GET', path + query, { token });
        seen.push(...itemsOf(answer).map((item) => item[member]));
        if (answer.json.next_cursor === undefined) return seen.sort();
        query = `?limit=1&cursor=${String(answer.json.next_cursor)}`;
      }
    };
    const viewers = () => ({
      all: fixture.operator('all', 'viewer', INSTALLATION),
      environment: fixture.operator('env', 'viewer', { kind: 'environment', id: shop.environmentId }),
      fleet: fixture.operator('flt', 'viewer', { kind: 'fleet', id: shop.fleetId }),
      site: fixture.operator('site', 'viewer', siteScope(shop.siteId)),
      withoutRole: fixture.operators.add('unknown', []),
    });

    test('environments and sites', async () => {
      const by = viewers();
      expect(await ids('/v1/environments', 'environment_id', by.all)).toEqual(
        [shop.environmentId, other.environmentId].sort(),
      );
      expect(await ids('/v1/environments', 'environment_id', by.environment)).toEqual([shop.environmentId]);
      expect(await ids('/v1/environments', 'environment_id', by.fleet)).toEqual([]);
      expect(await ids('/v1/sites', 'site_id', by.all)).toEqual(['ours', 'theirs']);
      for (const token of [by.environment, by.fleet, by.site]) {
        expect(await ids('/v1/sites', 'site_id', token)).toEqual(['ours']);
      }
      expect(await ids('/v1/sites', 'site_id', by.withoutRole)).toEqual([]);
    });

    test('role grants and access tokens', async () => {
      const by = viewers();
      const scopes = [
        { kind: 'installation' },
        { kind: 'environment', id: shop.environmentId },
        { kind: 'fleet', id: shop.fleetId },
        siteScope(shop.siteId),
        siteScope(other.siteId),
      ];
      const grants: unknown[] = [];
      const tokens: unknown[] = [];
      for (const scope of scopes) {
        grants.push((await grant('group:listed', scope)).json.role_grant_id);
        const token = await fixture.expect(201, 'POST', '/v1/access-tokens', {
          body: { name: 'listed', role: 'viewer', scope },
        });
        tokens.push(token.json.access_token_id);
      }
      const isListed = (list: readonly unknown[], seen: readonly unknown[]) =>
        list.map((id) => seen.includes(id));
      for (const [path, member, made] of [
        ['/v1/role-grants', 'role_grant_id', grants],
        ['/v1/access-tokens', 'access_token_id', tokens],
      ] as const) {
        const seen = async (token: string) => isListed(made, await ids(path, member, token));
        expect(await seen(by.all)).toEqual([true, true, true, true, true]);
        expect(await seen(by.environment)).toEqual([false, true, true, true, false]);
        expect(await seen(by.fleet)).toEqual([false, false, true, true, false]);
        expect(await seen(by.site)).toEqual([false, false, false, true, false]);
        expect(await seen(by.withoutRole)).toEqual([false, false, false, false, false]);
      }
    });

    test('audit events, also those of deleted sites', async () => {
      const gone = await fixture.shop('gone');
      await fixture.expect(204, 'DELETE', `/v1/sites/${gone.siteId}`, { ifMatch: 1 });
      const by = viewers();
      const places = async (token: string) => new Set(await ids('/v1/audit-events', 'site_id', token));
      expect(await places(by.site)).toEqual(new Set(['ours']));
      expect(await places(by.fleet)).toEqual(new Set(['ours', undefined]));
      expect((await places(by.all)).has('theirs')).toBe(true);
      expect(await places(by.withoutRole)).toEqual(new Set());
      const token = fixture.operator('gone', 'viewer', { kind: 'environment', id: gone.environmentId });
      const kinds = await ids('/v1/audit-events', 'kind', token);
      expect(kinds).toContain('proofgate.control.site.delete');
      // A filter narrows the result; it never widens it.
      const foreign = await fixture.expect(200, 'GET', `/v1/audit-events?site_id=${other.siteId}`, {
        token: by.site,
      });
      expect(itemsOf(foreign)).toEqual([]);
    });
  });

  test('every change leaves its event, with what was before and after, who and which request', async () => {
    const { siteId, environmentId, fleetId } = await fixture.shop('audited');
    const site = `/v1/sites/${siteId}`;
    const signingKeys = itemsOf(await fixture.expect(200, 'GET', `${site}/signing-keys`));
    const freshnessKey = signingKeys.find(({ purpose }) => purpose === 'freshness')?.signing_key_id;
    const issuer = encodeURIComponent('https://broker.example');
    const jwk = { kty: 'OKP', crv: 'Ed25519', x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo' };
    const definition = {
      trust_domain: 'shop.example',
      subject_prefixes: ['spiffe://shop.example/'],
      key_binding: 'software',
      keys: [{ kid: 'b', alg: 'Ed25519', jwk }],
    };
    const steps: (readonly [method: string, path: string, asked?: object])[] = [
      ['PATCH', `/v1/environments/${environmentId}`, { body: { name: 'audited 2' }, ifMatch: 1 }],
      ['PATCH', `/v1/fleets/${fleetId}`, { body: { name: 'audited 2' }, ifMatch: 1 }],
      ['PATCH', site, { body: { display_name: 'x' }, ifMatch: 1 }],
      ['POST', `${site}/signing-keys/rotate`, { body: { purpose: 'freshness' } }],
      ['POST', `${site}/signing-keys/${freshnessKey}/retire`, { body: {} }],
      ['PUT', `${site}/brokers/${issuer}`, { body: { definition } }],
      ['PUT', `${site}/brokers/${issuer}`, { body: { definition }, ifMatch: 1 }],
      ['DELETE', `${site}/brokers/${issuer}`, { ifMatch: 2 }],
      ['POST', `${site}/clients`, { body: { client_id: 'c', subject: 'client:c' } }],
      ['PATCH', `${site}/clients/c`, { body: { subject: 'client:d' }, ifMatch: 1 }],
      ['PUT', `${site}/clients/c/grants/r`, { body: { access: 'read' } }],
      ['PUT', `${site}/clients/c/grants/r`, { body: { access: 'write' } }],
      ['DELETE', `${site}/clients/c/grants/r`],
      ['DELETE', `${site}/clients/c`, { ifMatch: 2 }],
      ['POST', `${site}/routes`, { body: { route_id: 'r', definition: ROUTE_DEFINITION } }],
      ['PUT', `${site}/routes/r`, { body: { definition: ROUTE_DEFINITION }, ifMatch: 1 }],
      ['PUT', `${site}/routes/r/sources`, { body: { allowed_sources: ALLOWED_SOURCES } }],
      ['PUT', `${site}/routes/r/sources`, { body: { allowed_sources: ALLOWED_SOURCES }, ifMatch: 1 }],
      ['DELETE', `${site}/routes/r/sources`, { ifMatch: 2 }],
      ['DELETE', `${site}/routes/r`, { ifMatch: 4 }],
      ['DELETE', site, { ifMatch: 2 }],
      ['DELETE', `/v1/fleets/${fleetId}`, { ifMatch: 2 }],
      ['DELETE', `/v1/environments/${environmentId}`, { ifMatch: 2 }],
    ];
    const requests: unknown[] = [];
    for (const [method, path, asked] of steps) {
      const answer = await fixture.call(method, path, asked);
      expect([method, path, answer.code]).toEqual([method, path, undefined]);
      requests.push(answer.headers['x-request-id']);
    }
    const trail = await fixture.expect(
      200,
      'GET',
      `/v1/audit-events?environment_id=${environmentId}&limit=200`,
    );
    const events = itemsOf(trail).toReversed();
    const shape = events.map(({ kind, before, after }) => {
      const sides = `${before === undefined ? '-' : 'before'} ${after === undefined ? '-' : 'after'}`;
      return `${String(kind).replace('proofgate.control.', '')} ${sides}`;
    });
    expect(shape).toEqual([
      'environment.create - after',
      'fleet.create - after',
      'site.create - after',
      'environment.change before after',
      'fleet.change before after',
      'site.change before after',
      'signing_key.rotate - after',
      'signing_key.retire before after',
      'broker.create - after',
      'broker.change before after',
      'broker.delete before -',
      'client.create - after',
      'client.change before after',
      'grant.create - after',
      'grant.change before after',
      'grant.delete before -',
      'client.delete before -',
      'route.create - after',
      'route.change before after',
      'route_sources.create - after',
      'route_sources.change before after',
      'route_sources.delete before -',
      'route.delete before -',
      'site.delete before -',
      'fleet.delete before -',
      'environment.delete before -',
    ]);
    expect(events.slice(3).map(({ request_id }) => request_id)).toEqual(requests);
    expect(new Set(events.map(({ actor }) => actor))).toEqual(new Set(['token:root']));
    const changed = events.find(({ kind }) => kind === 'proofgate.control.client.change');
    expect(changed).toMatchObject({
      before: { subject: 'client:c', version: 1 },
      after: { subject: 'client:d', version: 2 },
      resource: { kind: 'client', id: 'c' },
      site_id: siteId,
      fleet_id: fleetId,
    });
  });

  test('a refused change leaves neither event nor change', async () => {
    const count = async () => itemsOf(await fixture.expect(200, 'GET', '/v1/audit-events?limit=200')).length;
    const before = await count();
    await fixture.call('PATCH', `/v1/sites/${shop.siteId}`, { body: { skew_seconds: 7 }, ifMatch: 9 });
    await fixture.call('PUT', `/v1/sites/${shop.siteId}/routes/none/sources`, {
      body: { allowed_sources: ALLOWED_SOURCES },
    });
    expect(await count()).toBe(before);
    expect((await fixture.expect(200, 'GET', `/v1/sites/${shop.siteId}`)).json.skew_seconds).toBe(5);
  });
});
