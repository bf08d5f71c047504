import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { tokenHash } from '../../../src/control/secrets/bearer-token.ts';
import type { ControlStore } from '../../../src/control/store/port.ts';
import {
  ALLOWED_SOURCES,
  ApiFixture,
  itemsOf,
  ROUTE_DEFINITION,
  type Shop,
  SITE_BODY,
  textIn,
} from '../../support/control/api-fixture.ts';
import {
  challengeRow,
  enrollmentRow,
  keyRow,
  policyRow,
  revisionRow,
  sourceRow,
} from '../../support/control/store-rows.ts';
import { databaseKinds } from '../store/databases.ts';

/** Leaves the records of a used site: ended policies, keys and sources, and published documents. */
async function leaveTracesIn(store: ControlStore, siteId: string): Promise<void> {
  const source = sourceRow(siteId);
  const policy = { ...policyRow(source, 'c'), state: 'deleted' as const };
  const key = keyRow(siteId, { expiresAtSeconds: 1 });
  await store.writeUnaudited({ kind: 'site', siteId }, async (tx) => {
    await tx.sources.add(source);
    await tx.sourceRevisions.add(revisionRow(source, 1, 'retired'));
    await tx.sources.putKeySet({ sourceId: source.id, revision: 1, jwks: '{}', fetchedAtMs: 1 });
    await tx.sources.claimAudience(`audience of ${siteId}`, siteId);
    await tx.policies.add(policy);
    await tx.enrollments.addChallenge(challengeRow(siteId, policy.id));
    await tx.enrollments.add(enrollmentRow(policy, { state: 'issued', keyId: key.keyId }));
    await tx.keys.add(key);
    await tx.keys.rejectPublicKey(siteId, 'revoked-thumbprint', 1);
    await tx.keys.blockSubject({ siteId, issuer: 'i', subject: 's', blockedAtMs: 1, blockedBy: 'x' });
    await tx.distribution.putFreshness({ siteId, revision: 1, head: 'h', asOfSeconds: 1, document: 'd' });
  });
}

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

  describe('environments and fleets', () => {
    test('are made, read, renamed, listed and deleted', async () => {
      const made = await fixture.expect(201, 'POST', '/v1/environments', { body: { name: 'staging' } });
      const id = textIn(made, 'environment_id');
      expect(made.headers.location).toBe(`/v1/environments/${id}`);
      expect(made.headers.etag).toBe('"1"');
      const renamed = await fixture.expect(200, 'PATCH', `/v1/environments/${id}`, {
        body: { name: 'staging 2' },
        ifMatch: 1,
      });
      expect(renamed.json).toMatchObject({ name: 'staging 2', version: 2 });
      const fleet = await fixture.expect(201, 'POST', `/v1/environments/${id}/fleets`, {
        body: { name: 'a' },
      });
      const fleetId = textIn(fleet, 'fleet_id');
      expect(itemsOf(await fixture.expect(200, 'GET', `/v1/environments/${id}/fleets`))).toEqual([
        fleet.json,
      ]);
      expect((await fixture.call('DELETE', `/v1/environments/${id}`, { ifMatch: 2 })).code).toBe(
        'still_in_use',
      );
      await fixture.expect(200, 'PATCH', `/v1/fleets/${fleetId}`, { body: { name: 'b' }, ifMatch: 1 });
      await fixture.expect(204, 'DELETE', `/v1/fleets/${fleetId}`, { ifMatch: 2 });
      await fixture.expect(204, 'DELETE', `/v1/environments/${id}`, { ifMatch: 2 });
      expect((await fixture.call('GET', `/v1/environments/${id}`)).code).toBe('not_found');
    });

    test('names are taken once among siblings', async () => {
      const again = await fixture.call('POST', '/v1/environments', { body: { name: 'shop-eu-1' } });
      expect(again.code).toBe('already_exists');
      const path = `/v1/environments/${shop.environmentId}/fleets`;
      expect((await fixture.call('POST', path, { body: { name: 'shop-eu-1' } })).code).toBe('already_exists');
      const other = await fixture.expect(201, 'POST', path, { body: { name: 'other' } });
      const taken = await fixture.call('PATCH', `/v1/fleets/${textIn(other, 'fleet_id')}`, {
        body: { name: 'shop-eu-1' },
        ifMatch: 1,
      });
      expect(taken.code).toBe('already_exists');
    });

    test('cannot go while roles are granted on them', async () => {
      const made = await fixture.expect(201, 'POST', '/v1/environments', { body: { name: 'held' } });
      const id = textIn(made, 'environment_id');
      const grant = await fixture.expect(201, 'POST', '/v1/role-grants', {
        body: { principal: 'group:ops', role: 'viewer', scope: { kind: 'environment', id } },
      });
      expect((await fixture.call('DELETE', `/v1/environments/${id}`, { ifMatch: 1 })).code).toBe(
        'still_in_use',
      );
      await fixture.expect(204, 'DELETE', `/v1/role-grants/${textIn(grant, 'role_grant_id')}`);
      await fixture.expect(204, 'DELETE', `/v1/environments/${id}`, { ifMatch: 1 });
    });
  });

  describe('sites', () => {
    const path = () => `/v1/fleets/${shop.fleetId}/sites`;

    test('are made with defaults and two signing keys, and are on their way to the publisher', async () => {
      const site = await fixture.expect(200, 'GET', `/v1/sites/${shop.siteId}`);
      expect(site.json).toMatchObject({
        environment_id: shop.environmentId,
        fleet_id: shop.fleetId,
        skew_seconds: 5,
        single_verifier: false,
        bundle_lifetime_seconds: 2_592_000,
        source_capacity: 16,
        replay_stores: 'one',
        version: 1,
      });
      const keys = itemsOf(await fixture.expect(200, 'GET', `/v1/sites/${shop.siteId}/signing-keys`));
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
      const answer = await fixture.call('POST', path(), { body });
      expect(answer).toMatchObject({ status: 422, code: 'definition_invalid' });
      expect(answer.json.errors).toMatchObject([{ pointer }]);
    });

    test.each(['..', '.', 'with space', 'ü', '', 'x'.repeat(513)])(
      'site_id %p is refused',
      async (site_id) => {
        const body = { ...SITE_BODY, site_id, issuer_url: 'https://x.example' };
        const answer = await fixture.call('POST', path(), { body });
        expect(answer).toMatchObject({ status: 400, code: 'request_malformed' });
        expect(answer.json.errors).toMatchObject([{ pointer: '/body/site_id' }]);
      },
    );

    test('identifier and issuer are taken once', async () => {
      const sameId = { ...SITE_BODY, issuer_url: 'https://y.example' };
      expect((await fixture.call('POST', path(), { body: sameId })).code).toBe('already_exists');
      const sameIssuer = { ...SITE_BODY, site_id: 'another' };
      expect((await fixture.call('POST', path(), { body: sameIssuer })).code).toBe('already_exists');
    });

    test('an identifier with slashes and percent signs is one step of a path', async () => {
      const site_id = 'a/b%2Fc?d#e';
      const body = { ...SITE_BODY, site_id, issuer_url: 'https://odd.example' };
      const made = await fixture.expect(201, 'POST', path(), { body });
      const location = String(made.headers.location);
      expect((await fixture.expect(200, 'GET', location)).json.site_id).toBe(site_id);
      await fixture.expect(204, 'DELETE', location, { ifMatch: 1 });
    });

    test('trust domain and issuer are fixed', async () => {
      for (const member of ['trust_domain', 'issuer_url', 'site_id']) {
        const answer = await fixture.call('PATCH', `/v1/sites/${shop.siteId}`, {
          body: { [member]: 'shop.example' },
          ifMatch: 1,
        });
        expect(answer.code).toBe('request_malformed');
        expect(answer.json.errors).toMatchObject([{ pointer: `/body/${member}`, reason: 'unknown member' }]);
      }
    });

    test('what bundles hold goes to the publisher; a name does not', async () => {
      const { siteId } = await fixture.shop('patched');
      const before = (await pendingChanges(siteId)).length;
      const named = await fixture.expect(200, 'PATCH', `/v1/sites/${siteId}`, {
        body: { display_name: 'Another', source_capacity: 3, replay_stores: 'per_region' },
        ifMatch: 1,
      });
      expect(named.json.replay_stores).toBe('per_region');
      expect(await pendingChanges(siteId)).toHaveLength(before);
      const changed = await fixture.expect(200, 'PATCH', `/v1/sites/${siteId}`, {
        body: { origins: ['https://api2.shop.example'], skew_seconds: 9, single_verifier: true },
        ifMatch: 2,
      });
      expect(changed.json).toMatchObject({ origins: ['https://api2.shop.example'], version: 3 });
      expect(await pendingChanges(siteId)).toHaveLength(before + 1);
    });

    test('origins that a published route needs stay', async () => {
      const { siteId } = await fixture.shop('narrowed');
      const definition = { ...ROUTE_DEFINITION, origins: ['https://api.shop.example'] };
      await fixture.expect(201, 'POST', `/v1/sites/${siteId}/routes`, {
        body: { route_id: 'r', definition },
      });
      await fixture.expect(201, 'PUT', `/v1/sites/${siteId}/routes/r/sources`, {
        body: { allowed_sources: ALLOWED_SOURCES },
      });
      const answer = await fixture.call('PATCH', `/v1/sites/${siteId}`, {
        body: { origins: ['https://elsewhere.example'] },
        ifMatch: 1,
      });
      expect(answer).toMatchObject({ status: 422, code: 'definition_invalid' });
      expect((await fixture.expect(200, 'GET', `/v1/sites/${siteId}`)).json.version).toBe(1);
    });

    test('are published above a revision that an operator names, once, whatever is asked again', async () => {
      const { siteId } = await fixture.shop('restored');
      const path = `/v1/sites/${siteId}/raise-floor`;
      const raise = (revision: number) => fixture.call('POST', path, { body: { above_revision: revision } });
      for (const revision of [0, -1, 1.5, 1_000_000_000_000_000]) {
        expect((await raise(revision)).code).toBe('request_malformed');
      }
      const raised = await raise(3_000_000);
      expect(raised).toMatchObject({
        status: 200,
        json: { site_id: siteId, revision: 0, floor_revision: 3_000_000 },
      });
      expect((await raise(3_000_000)).json).toEqual(raised.json);
      expect((await raise(7)).json).toEqual(raised.json);
      await fixture.store.read(async (tx) => {
        expect(await tx.sites.find(siteId)).toMatchObject({ floorRevision: 3_000_000, wholeNeeded: 1 });
        const kind = 'proofgate.control.site.raise_floor';
        const events = await tx.audit.list({ siteId, kind, reach: { kind: 'everything' }, limit: 9 });
        expect(events.map(({ after }): unknown => JSON.parse(after ?? ''))).toEqual([raised.json]);
        expect(events[0]?.actor).not.toMatch(/^target:/);
      });
    });

    test('can go once nothing is left on them, with all that was kept', async () => {
      const { siteId, fleetId } = await fixture.shop('gone');
      const target = await fixture.expect(201, 'POST', `/v1/sites/${siteId}/targets`, {
        body: { name: 't' },
      });
      await fixture.expect(201, 'POST', `/v1/sites/${siteId}/clients`, {
        body: { client_id: 'c', subject: 'client:c' },
      });
      const remove = () => fixture.call('DELETE', `/v1/sites/${siteId}`, { ifMatch: 1 });
      expect(await remove()).toMatchObject({ code: 'still_in_use' });
      expect((await fixture.call('DELETE', `/v1/fleets/${fleetId}`, { ifMatch: 1 })).code).toBe(
        'still_in_use',
      );
      await fixture.expect(204, 'DELETE', `/v1/sites/${siteId}/clients/c`, { ifMatch: 1 });
      await fixture.expect(200, 'POST', `/v1/targets/${textIn(target, 'target_id')}/detach`);
      await leaveTracesIn(fixture.store, siteId);
      const grant = await fixture.expect(201, 'POST', '/v1/access-tokens', {
        body: { name: 'ci', role: 'viewer', scope: { kind: 'site', id: siteId } },
      });
      expect(await remove()).toMatchObject({ code: 'still_in_use' });
      await fixture.expect(204, 'DELETE', `/v1/access-tokens/${textIn(grant, 'access_token_id')}`, {
        ifMatch: 1,
      });
      expect((await remove()).status).toBe(204);
      expect((await fixture.call('GET', `/v1/sites/${siteId}`)).code).toBe('not_found');
      await fixture.store.read(async (tx) => {
        expect(await tx.signingKeys.ofSite(siteId)).toEqual([]);
        expect(await tx.distribution.freshness(siteId)).toBeUndefined();
        expect(await tx.sources.ownerOfAudience(`audience of ${siteId}`)).toBeUndefined();
        // A new site of the same name would still reject these keys.
        expect(await tx.keys.publicKeyWasRevoked(siteId, 'revoked-thumbprint')).toBe(true);
      });
      expect(await pendingChanges(siteId)).toEqual([]);
    });
  });

  test('a site that gets the identifier of a deleted one gets nothing that was kept of it', async () => {
    const first = await fixture.shop('reused');
    const { siteId } = first;
    const scope = { kind: 'site', id: siteId } as const;
    const made = await fixture.expect(201, 'POST', `/v1/sites/${siteId}/targets`, { body: { name: 't' } });
    await fixture.expect(200, 'POST', `/v1/targets/${textIn(made, 'target_id')}/detach`);
    const grant = await fixture.expect(201, 'POST', '/v1/role-grants', {
      body: { principal: 'group:shop', role: 'viewer', scope },
    });
    const token = await fixture.expect(201, 'POST', '/v1/access-tokens', {
      body: { name: 'ci', role: 'viewer', scope },
    });
    const remove = () => fixture.call('DELETE', `/v1/sites/${siteId}`, { ifMatch: 1 });
    // Role grants on a site must be revoked before its deletion, so that they never apply to a later site.
    expect((await remove()).code).toBe('still_in_use');
    await fixture.expect(204, 'DELETE', `/v1/role-grants/${textIn(grant, 'role_grant_id')}`);
    expect((await remove()).code).toBe('still_in_use');
    const tokenPath = `/v1/access-tokens/${textIn(token, 'access_token_id')}`;
    await fixture.expect(204, 'DELETE', tokenPath, { ifMatch: 1 });
    expect((await remove()).status).toBe(204);
    const second = await fixture.shop('elsewhere');
    await fixture.expect(201, 'POST', `/v1/fleets/${second.fleetId}/sites`, {
      body: { ...SITE_BODY, site_id: siteId, issuer_url: 'https://control.shop.example/sites/reused' },
    });
    const hash = tokenHash(textIn(made, 'token'));
    expect(await fixture.store.read((tx) => tx.targets.byTokenHash(hash, fixture.ms))).toBeUndefined();
    expect(itemsOf(await fixture.expect(200, 'GET', `/v1/sites/${siteId}/targets`))).toEqual([]);
    const kinds = async (token?: string) => {
      const path = `/v1/audit-events?site_id=${siteId}`;
      const items = itemsOf(await fixture.expect(200, 'GET', path, token === undefined ? {} : { token }));
      return items.map(({ kind, environment_id }) => [kind, environment_id]);
    };
    const created = ['proofgate.control.site.create', second.environmentId];
    expect(await kinds(fixture.operator('of-the-new-site', 'viewer', scope))).toEqual([created]);
    const ofFirst = fixture.operator('of-the-first', 'viewer', {
      kind: 'environment',
      id: first.environmentId,
    });
    expect(await kinds(ofFirst)).not.toContainEqual(created);
    expect(await kinds()).toContainEqual(['proofgate.control.site.delete', first.environmentId]);
  });

  describe('signing keys', () => {
    test('rotate with both signing for a while', async () => {
      const { siteId } = await fixture.shop('rotating');
      const rotated = await fixture.expect(201, 'POST', `/v1/sites/${siteId}/signing-keys/rotate`, {
        body: { purpose: 'bundle', retiring_seconds: 600 },
      });
      const keys = itemsOf(await fixture.expect(200, 'GET', `/v1/sites/${siteId}/signing-keys`));
      const bundle = keys.filter(({ purpose }) => purpose === 'bundle');
      expect(bundle.map(({ state }) => state).sort()).toEqual(['active', 'retiring']);
      expect(bundle.find(({ state }) => state === 'active')).toEqual(rotated.json);
      expect(bundle.find(({ state }) => state === 'retiring')?.retire_at).toBe(
        new Date(fixture.ms + 600_000).toISOString(),
      );
      expect(keys.filter(({ purpose }) => purpose === 'freshness')).toHaveLength(1);
    });

    test('a retiring one is ended sooner, or now, and no other', async () => {
      const { siteId } = await fixture.shop('ended');
      const other = await fixture.shop('not-ended');
      const keysPath = `/v1/sites/${siteId}/signing-keys`;
      const keys = async () => itemsOf(await fixture.expect(200, 'GET', keysPath));
      const id = String((await keys()).find(({ purpose }) => purpose === 'bundle')?.signing_key_id);
      const endedKey = async () => (await keys()).find(({ signing_key_id }) => signing_key_id === id);
      const retire = (keyId: string, body: object = {}, site = siteId) =>
        fixture.call('POST', `/v1/sites/${site}/signing-keys/${keyId}/retire`, { body });
      const conflict = { status: 409, code: 'signing_key_state_conflict' };
      expect(await retire(id)).toMatchObject(conflict);
      await fixture.expect(201, 'POST', `${keysPath}/rotate`, {
        body: { purpose: 'bundle', retiring_seconds: 600 },
      });
      for (const seconds of [600, 601]) {
        expect(await retire(id, { retiring_seconds: seconds })).toMatchObject(conflict);
      }
      expect(await retire(id, { retiring_seconds: -1 })).toMatchObject({ code: 'request_malformed' });
      expect(await retire(id, {}, other.siteId)).toMatchObject({ status: 404, code: 'not_found' });
      expect(await retire('sk_none')).toMatchObject({ status: 404, code: 'not_found' });
      const at = (seconds: number) => new Date(fixture.ms + seconds * 1000).toISOString();
      const sooner = { signing_key_id: id, state: 'retiring', retire_at: at(60) };
      expect(await retire(id, { retiring_seconds: 60 })).toMatchObject({ status: 200, json: sooner });
      expect(await endedKey()).toMatchObject(sooner);
      const ended = { signing_key_id: id, state: 'retired', retire_at: at(0) };
      expect(await retire(id)).toMatchObject({ status: 200, json: ended });
      expect(await endedKey()).toMatchObject(ended);
      expect(await retire(id)).toMatchObject(conflict);
      const events = itemsOf(await fixture.expect(200, 'GET', `/v1/audit-events?resource_id=${id}`));
      expect(events.map(({ kind, before, after }) => ({ kind, before, after }))).toMatchObject([
        { kind: 'proofgate.control.signing_key.retire', before: sooner, after: ended },
        { kind: 'proofgate.control.signing_key.retire', before: { retire_at: at(600) }, after: sooner },
      ]);
    });
  });

  describe('targets', () => {
    test('a token is shown once, kept as a hash, and rotates with an overlap', async () => {
      const { siteId } = await fixture.shop('targeted');
      const made = await fixture.expect(201, 'POST', `/v1/sites/${siteId}/targets`, {
        body: { name: 'eu-1a' },
      });
      const id = textIn(made, 'target_id');
      const first = textIn(made, 'token');
      expect((await fixture.expect(200, 'GET', `/v1/targets/${id}`)).json.token).toBeUndefined();
      const rotated = await fixture.expect(200, 'POST', `/v1/targets/${id}/rotate-token`, {
        body: { overlap_seconds: 60 },
      });
      const second = textIn(rotated, 'token');
      const isGood = async (token: string, atMs: number) => {
        return (await fixture.store.read((tx) => tx.targets.byTokenHash(tokenHash(token), atMs)))?.id === id;
      };
      expect(await isGood(first, fixture.ms + 59_999)).toBe(true);
      expect(await isGood(first, fixture.ms + 60_000)).toBe(false);
      expect(await isGood(second, fixture.ms + 60_000)).toBe(true);
      await fixture.expect(200, 'POST', `/v1/targets/${id}/rotate-token`, { body: { overlap_seconds: 0 } });
      expect(await isGood(second, fixture.ms)).toBe(false);
      await fixture.expect(200, 'PATCH', `/v1/targets/${id}`, { body: { name: 'eu-1b' }, ifMatch: 3 });
      const detached = await fixture.expect(200, 'POST', `/v1/targets/${id}/detach`);
      expect(detached.json.state).toBe('detached');
      for (const action of ['detach', 'rotate-token']) {
        const body = action === 'detach' ? {} : { body: {} };
        expect((await fixture.call('POST', `/v1/targets/${id}/${action}`, body)).code).toBe(
          'target_state_conflict',
        );
      }
      expect(itemsOf(await fixture.expect(200, 'GET', `/v1/sites/${siteId}/targets`))).toEqual([
        detached.json,
      ]);
    });
  });
});
