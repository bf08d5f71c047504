import { expect, it } from '@jest/globals';
import { newId } from '../../../../src/control/domain/resource-identifiers.ts';
import { brokerPlace } from '../../../../src/control/store/repositories/brokers-repository.ts';
import { VersionConflictError } from '../../../../src/control/store/repositories/records.ts';
import {
  clientRow,
  keyRow,
  NOW_SECONDS,
  policyRow,
  sourceRow,
  targetRow,
  VERSIONED,
} from '../../../support/control/store-rows.ts';
import { NOW_MS } from '../databases.ts';
import { ALL, type Bench, pages } from './bench.ts';

export function clientCases({ read, write, ground }: Bench): void {
  it('clients and their grants', async () => {
    const { siteId } = await ground();
    const grant = (clientId: string, resource: string, access: 'read' | 'write', createdAtMs = NOW_MS) => ({
      siteId,
      clientId,
      resource,
      access,
      createdAtMs,
    });
    await write(async ({ clients }) => {
      await clients.addAll(['c', 'a', 'b'].map((name) => clientRow(siteId, name)));
      await clients.putGrants([grant('a', 'orders', 'read')]);
      await clients.putGrants([grant('a', 'orders', 'write', NOW_MS + 1)]);
      await clients.putGrants([grant('a', 'prices', 'read')]);
      await clients.addGrants([grant('b', 'orders', 'read')]);
      await clients.change({ siteId, clientId: 'a', version: 1 }, { context: '{"x":"y"}' }, NOW_MS + 1);
    });
    await read(async ({ clients }) => {
      expect(await clients.find(siteId, 'a')).toEqual({
        ...clientRow(siteId, 'a'),
        context: '{"x":"y"}',
        version: 2,
        updatedAtMs: NOW_MS + 1,
      });
      expect(await clients.find('elsewhere', 'a')).toBeUndefined();
      const listed = await pages(
        2,
        (page) => clients.list({ siteId }, page),
        ({ clientId }) => clientId,
      );
      expect(listed).toEqual([['a', 'b'], ['c']]);
      expect(await clients.count(siteId)).toBe(3);
      expect(await clients.grants(siteId, 'a')).toEqual([
        grant('a', 'orders', 'write', NOW_MS + 1),
        grant('a', 'prices', 'read'),
      ]);
      expect(await clients.grant(siteId, 'a', 'prices')).toEqual(grant('a', 'prices', 'read'));
      expect(await clients.grant(siteId, 'c', 'prices')).toBeUndefined();
      const grants = await pages(
        1,
        (page) => clients.grantsPage(siteId, 'a', page),
        ({ resource }) => resource,
      );
      expect(grants).toEqual([['orders'], ['prices']]);
      expect(await clients.countGrants(siteId, 'a')).toBe(2);
      expect((await clients.allGrants(siteId)).map((row) => `${row.clientId} ${row.resource}`)).toEqual([
        'a orders',
        'a prices',
        'b orders',
      ]);
      const siteGrants = async (after?: { readonly clientId: string; readonly resource: string }) =>
        (await clients.siteGrantsPage(siteId, after, 2)).map((row) => `${row.clientId} ${row.resource}`);
      expect(await siteGrants()).toEqual(['a orders', 'a prices']);
      expect(await siteGrants({ clientId: 'a', resource: 'orders' })).toEqual(['a prices', 'b orders']);
      expect(await siteGrants({ clientId: 'b', resource: 'orders' })).toEqual([]);
    });
    expect(await write((tx) => tx.clients.removeGrant(siteId, 'b', 'orders'))).toBe(true);
    expect(await write((tx) => tx.clients.removeGrant(siteId, 'b', 'orders'))).toBe(false);
    expect(await write((tx) => tx.clients.remove(siteId, 'b'))).toBe(true);
    expect(await write((tx) => tx.clients.remove(siteId, 'b'))).toBe(false);
    await expect(write((tx) => tx.clients.remove(siteId, 'a'))).rejects.toMatchObject({ kind: 'reference' });
    await write((tx) => tx.clients.removeGrantsOf(siteId, ['a']));
    expect(await read((tx) => tx.clients.grants(siteId, 'a'))).toEqual([]);
  });

  it('many clients and grants at once', async () => {
    const { siteId } = await ground();
    const names = Array.from({ length: 1_200 }, (_, index) => `c${String(index).padStart(4, '0')}`);
    const grant = (clientId: string, resource: string, access: 'read' | 'write' = 'read') => ({
      ...{ siteId, clientId, resource, access, createdAtMs: NOW_MS },
    });
    const orders = names.map((name) => grant(name, 'orders'));
    await write(async ({ clients }) => {
      await clients.addAll(names.map((name) => clientRow(siteId, name)));
      await clients.putGrants(orders);
      await clients.putGrants([grant('c0001', 'orders', 'write'), grant('c0001', 'prices')]);
      const changed = names.map((name) => ({ ...clientRow(siteId, name), context: '{"x":"y"}' }));
      await clients.changeAll(changed, NOW_MS + 1);
    });
    await read(async ({ clients }) => {
      expect(await clients.count(siteId)).toBe(1_200);
      expect(await clients.find(siteId, 'c1199')).toEqual({
        ...clientRow(siteId, 'c1199'),
        ...{ context: '{"x":"y"}', version: 2, updatedAtMs: NOW_MS + 1 },
      });
      expect(await clients.grants(siteId, 'c0001')).toEqual([
        grant('c0001', 'orders', 'write'),
        grant('c0001', 'prices'),
      ]);
      expect(await clients.allGrants(siteId)).toHaveLength(1_201);
    });
    await write((tx) => tx.clients.removeEachGrant(siteId, orders.slice(0, 1_100)));
    await write((tx) => tx.clients.removeGrantsOf(siteId, ['c0001', ...names.slice(1_100)]));
    expect(await read((tx) => tx.clients.allGrants(siteId))).toEqual([]);
    await write((tx) => tx.clients.removeAll(siteId, names.slice(1)));
    expect(await read((tx) => tx.clients.count(siteId))).toBe(1);
  });

  it('brokers', async () => {
    const { siteId } = await ground();
    const issuer = 'https://broker.shop.example/a?b=c';
    const trustDomain = 'shop.example';
    const broker = { siteId, issuer, trustDomain, definition: '{}', keyPins: '{}', ...VERSIONED };
    await write(async ({ brokers }) => {
      await brokers.add(broker);
      await brokers.addAll([
        { ...broker, issuer: 'https://a.example' },
        { ...broker, issuer: 'https://a.example', trustDomain: 'other.example' },
        { ...broker, issuer: 'https://a.example.more' },
      ]);
      await brokers.change(broker, { definition: '{"a":1}' }, NOW_MS);
    });
    const stale = write((tx) => tx.brokers.change(broker, {}, NOW_MS));
    await expect(stale).rejects.toThrow(VersionConflictError);
    await read(async ({ brokers }) => {
      expect(await brokers.find(siteId, issuer, trustDomain)).toMatchObject({
        definition: '{"a":1}',
        version: 2,
      });
      expect(await brokers.find('elsewhere', issuer, trustDomain)).toBeUndefined();
      const listed = await pages(1, (page) => brokers.list({ siteId }, page), brokerPlace);
      expect(listed).toEqual([
        ['https://a.example other.example'],
        ['https://a.example shop.example'],
        ['https://a.example.more shop.example'],
        [`${issuer} ${trustDomain}`],
      ]);
      const ofIssuer = await brokers.ofIssuer(siteId, 'https://a.example');
      expect(ofIssuer.map((row) => row.trustDomain)).toEqual(['other.example', 'shop.example']);
    });
    expect(await write((tx) => tx.brokers.remove(siteId, issuer, 'other.example'))).toBe(false);
    expect(await write((tx) => tx.brokers.remove(siteId, issuer, trustDomain))).toBe(true);
    expect(await write((tx) => tx.brokers.remove(siteId, issuer, trustDomain))).toBe(false);
  });
}

export function oauthIssuerCases({ read, write, ground }: Bench): void {
  it('OAuth issuers', async () => {
    const { siteId } = await ground();
    const [first, second] = ['https://a.example', 'https://b.example/realms/x'];
    const row = { siteId, issuer: first, definition: '{}', ...VERSIONED };
    await write(async ({ oauthIssuers }) => {
      await oauthIssuers.add({ ...row, keys: null, attemptedAtMs: null });
      await oauthIssuers.add({ ...row, issuer: second });
      const fetch = { keys: '[]', fetchedAtMs: NOW_MS, attemptedAtMs: NOW_MS, failureCode: null };
      await oauthIssuers.noteFetch({ siteId, issuer: second }, fetch);
    });
    const issuersOf = (rows: readonly { readonly issuer: string; readonly siteId: string }[]) =>
      rows.filter((each) => each.siteId === siteId).map(({ issuer }) => issuer);
    await read(async ({ oauthIssuers }) => {
      expect(issuersOf(await oauthIssuers.list({ siteId }, ALL))).toEqual([first, second]);
      expect(issuersOf(await oauthIssuers.keyed())).toEqual([second]);
      expect(issuersOf(await oauthIssuers.due(NOW_MS - 1, NOW_MS))).toEqual([first]);
      expect(issuersOf(await oauthIssuers.due(NOW_MS, NOW_MS))).toEqual([first, second]);
      // The clock was set back.
      expect(issuersOf(await oauthIssuers.due(0, NOW_MS - 1))).toEqual([first, second]);
      expect(await oauthIssuers.oldestFetches()).toContainEqual({
        ...{ siteId, fetchedAtMs: Math.min(NOW_MS, VERSIONED.updatedAtMs) },
      });
    });
    await write(async ({ oauthIssuers }) => {
      await oauthIssuers.change({ ...row, version: 1 }, { definition: '{"a":1}' }, NOW_MS);
      // The second time it is forward already.
      for (const _ of [1, 2]) await oauthIssuers.bringForward(siteId, second, 1000, NOW_MS);
    });
    await read(async ({ oauthIssuers }) => {
      expect(await oauthIssuers.find(siteId, first)).toMatchObject({ definition: '{"a":1}', version: 2 });
      // Fetches make no version.
      const forward = { keys: '[]', attemptedAtMs: NOW_MS - 1000, version: 1 };
      expect(await oauthIssuers.find(siteId, second)).toMatchObject(forward);
    });
    expect(await write((tx) => tx.oauthIssuers.remove(siteId, first))).toBe(true);
  });
}

export function routeCases({ read, write, ground }: Bench): void {
  it('many routes at once', async () => {
    const { siteId } = await ground();
    const unobserved = { definition: '{}', observeUntilSeconds: null, ...VERSIONED };
    const routes = ['a', 'b', 'c'].map((routeId) => ({ siteId, routeId, ...unobserved }));
    await write(async (tx) => {
      await tx.routes.addAll(routes);
      await tx.routes.changeAll(
        routes.slice(1).map((row) => ({ ...row, definition: '{"method":"GET"}' })),
        NOW_MS + 1,
      );
    });
    const listed = async () =>
      (await read((tx) => tx.routes.list({ siteId }, ALL))).map((row) => row.version);
    expect(await listed()).toEqual([1, 2, 2]);
    await write((tx) => tx.routes.removeAll(siteId, ['a', 'c']));
    expect(await listed()).toEqual([2]);
  });

  it('observed routes with sources, until the last observation has ended', async () => {
    const { siteId } = await ground();
    const observed = (routeId: string, observeUntilSeconds: number | null) => ({
      ...{ siteId, routeId, definition: '{}', observeUntilSeconds, ...VERSIONED },
    });
    const rows = [observed('a', 20), observed('b', 30), observed('no-sources', 40), observed('no', null)];
    await write(async ({ routeSources, routes }) => {
      await routes.addAll(rows);
      for (const routeId of ['a', 'b', 'no']) {
        await routeSources.add({ siteId, routeId, allowedSources: '[]', ...VERSIONED });
      }
    });
    await read(async ({ publication }) => {
      expect(await publication.observedRoutes(siteId, 19)).toEqual({ count: 2, untilSeconds: 30 });
      expect(await publication.observedRoutes(siteId, 20)).toEqual({ count: 1, untilSeconds: 30 });
      expect(await publication.observedRoutes(siteId, 30)).toEqual({ count: 0, untilSeconds: undefined });
      expect(await publication.sitesWithheldMembers()).not.toContain(siteId);
    });
    for (const set of [
      { observations: 'withheld', acceptedProofs: 'none' },
      { observations: 'published', acceptedProofs: 'withheld' },
    ] as const) {
      await write((tx) => tx.hierarchy.advance(siteId, set));
      expect(await read((tx) => tx.publication.sitesWithheldMembers())).toContain(siteId);
    }
  });

  it('routes and their sources', async () => {
    const { siteId } = await ground();
    const unobserved = { definition: '{}', observeUntilSeconds: null, ...VERSIONED };
    const route = { siteId, routeId: 'orders-read', ...unobserved };
    const sources = { siteId, routeId: 'orders-read', allowedSources: '[]', ...VERSIONED };
    await expect(write((tx) => tx.routeSources.add(sources))).rejects.toMatchObject({ kind: 'reference' });
    await write(async ({ routeSources, routes }) => {
      await routes.addAll([route, { ...route, routeId: 'a' }]);
      await routeSources.add(sources);
      const written = await routes.change(route, { definition: '{"method":"GET"}' }, NOW_MS);
      expect(await routes.find(siteId, 'orders-read')).toEqual(written);
      await routeSources.change(sources, { allowedSources: '[{}]' }, NOW_MS);
    });
    expect(await read((tx) => tx.publication.publishedRoutes(siteId, ['a', 'orders-read']))).toEqual(
      new Set(['orders-read']),
    );
    await write((tx) => tx.publication.touchRoutes(siteId, ['a'], NOW_MS + 1));
    expect(await read((tx) => tx.routes.find(siteId, 'a'))).toMatchObject({
      version: 2,
      updatedAtMs: NOW_MS + 1,
    });
    await expect(write((tx) => tx.routes.change(route, {}, NOW_MS))).rejects.toThrow(VersionConflictError);
    const stale = write((tx) => tx.routeSources.change(sources, {}, NOW_MS));
    await expect(stale).rejects.toThrow(VersionConflictError);
    await read(async ({ routeSources, routes }) => {
      expect(await routes.find(siteId, 'orders-read')).toMatchObject({
        definition: '{"method":"GET"}',
        version: 2,
      });
      expect(await routeSources.find(siteId, 'orders-read')).toMatchObject({
        allowedSources: '[{}]',
        version: 2,
      });
      const listed = await pages(
        1,
        (page) => routes.list({ siteId }, page),
        ({ routeId }) => routeId,
      );
      expect(listed).toEqual([['a'], ['orders-read']]);
      expect(await routeSources.list({ siteId }, ALL)).toHaveLength(1);
      expect(await routeSources.list({ siteId }, { after: 'orders-read', limit: 9 })).toEqual([]);
    });
    expect(await write((tx) => tx.routeSources.remove(siteId, 'orders-read'))).toBe(true);
    expect(await write((tx) => tx.routeSources.remove(siteId, 'orders-read'))).toBe(false);
    expect(await write((tx) => tx.routes.remove(siteId, 'orders-read'))).toBe(true);
    expect(await write((tx) => tx.routes.remove(siteId, 'orders-read'))).toBe(false);
  });
}

export function targetCases({ read, write, ground }: Bench): void {
  it('targets, found by either of their tokens while it is good', async () => {
    const { siteId } = await ground();
    const [target, gone] = [targetRow(siteId, 'edge'), targetRow(siteId, 'gone')];
    await write(async ({ targets }) => {
      await targets.add(target);
      await targets.add(gone);
      await targets.change(
        target,
        {
          tokenHash: `${target.id}-new`,
          previousTokenHash: target.tokenHash,
          previousTokenEndsAtMs: NOW_MS + 1,
        },
        NOW_MS,
      );
      await targets.change(gone, { state: 'detached' }, NOW_MS);
      await targets.note(target.id, { ackedRevision: 4, ackedHead: 'head', lastSeenAtMs: NOW_MS + 2 });
    });
    await expect(write((tx) => tx.targets.change(gone, {}, NOW_MS))).rejects.toThrow(VersionConflictError);
    await read(async ({ targets }) => {
      expect(await targets.find(target.id)).toMatchObject({
        version: 2,
        ackedRevision: 4,
        lastSeenAtMs: NOW_MS + 2,
      });
      expect((await targets.byTokenHash(`${target.id}-new`, NOW_MS))?.id).toBe(target.id);
      expect((await targets.byTokenHash(target.tokenHash, NOW_MS))?.id).toBe(target.id);
      expect(await targets.byTokenHash(target.tokenHash, NOW_MS + 1)).toBeUndefined();
      expect(await targets.byTokenHash(gone.tokenHash, NOW_MS)).toBeUndefined();
      expect((await targets.attached(siteId)).map(({ id }) => id)).toEqual([target.id]);
      const listed = await pages(
        1,
        (page) => targets.list({ siteId }, page),
        ({ id }) => id,
      );
      expect(listed.flat()).toEqual([target.id, gone.id].sort());
    });
  });

  it('instances of attached targets', async () => {
    const { siteId } = await ground();
    const [target, gone] = [targetRow(siteId, 'edge'), targetRow(siteId, 'gone')];
    const instance = {
      ...{
        targetId: target.id,
        instanceId: 'a',
        siteId,
        version: '0.4.0',
        replayStore: null,
        enforcedObservations: 0,
        revision: null,
      },
      ...{ firstSeenAtMs: NOW_MS, lastSeenAtMs: NOW_MS },
      ...{ publicKey: null, realtimeStalenessSeconds: null, breakGlass: null, freshUntilMs: null },
      ...{ ackedRevision: null, ackedHead: null, ackedAtMs: null, signedAtMs: null },
    };
    const acked = { ackedRevision: 7, ackedHead: 'h', ackedAtMs: NOW_MS, signedAtMs: NOW_MS };
    const later = { ...instance, replayStore: 'memory', revision: 7, lastSeenAtMs: NOW_MS + 1 };
    await write(async ({ targetInstances, targets }) => {
      for (const each of [target, gone]) await targets.add(each);
      await targetInstances.put([
        instance,
        { ...instance, targetId: gone.id },
        { ...instance, instanceId: 'b' },
      ]);
      await targetInstances.put([later]);
      await targetInstances.remove({ ...instance, instanceId: 'b' });
      await targetInstances.putAcknowledged([{ ...later, ...acked }]);
      await targetInstances.put([later]);
      await targets.change(gone, { state: 'detached' }, NOW_MS);
    });
    await read(async ({ targetInstances }) => {
      expect(await targetInstances.ofSite(siteId, NOW_MS - 1)).toHaveLength(2);
      const kept = { ...later, ...acked };
      expect(await targetInstances.ofSite(siteId, NOW_MS)).toEqual([kept]);
      expect(await targetInstances.ofAttached([target.id, gone.id])).toEqual(new Map([[target.id, [kept]]]));
    });
    await write(({ targetInstances }) => targetInstances.removeAll(target.id));
    expect(await read(({ targetInstances }) => targetInstances.ofSite(siteId, 0))).toHaveLength(1);
    await write(({ sites }) => sites.remove(siteId));
    expect(await read(({ targetInstances }) => targetInstances.ofSite(siteId, 0))).toEqual([]);
  });

  it('counts of decisions', async () => {
    const { siteId } = await ground();
    const [target, gone] = [targetRow(siteId, 'edge'), targetRow(siteId, 'gone')];
    const row = (targetId: string, startSeconds: number, allowed: number) => ({
      ...{ spanSeconds: 60, startSeconds, targetId, siteId, allowed },
      ...{ denied: 2, observed: 3, dropped: 4, summary: '{}' },
    });
    await write(async ({ decisionSummaries, routes, targets }) => {
      for (const each of [target, gone]) await targets.add(each);
      await targets.change(gone, { state: 'detached' }, NOW_MS);
      await routes.add({
        siteId,
        routeId: 'orders',
        definition: '{}',
        observeUntilSeconds: null,
        ...VERSIONED,
      });
      await decisionSummaries.put([row(target.id, 60, 1), row(gone.id, 60, 10), row(target.id, 120, 5)]);
      await decisionSummaries.put([row(target.id, 60, 7)]);
    });
    const period = { siteId, spanSeconds: 60, fromSeconds: 60, untilSeconds: 180 };
    await read(async ({ decisionSummaries }) => {
      expect(await decisionSummaries.attached([target.id, gone.id])).toEqual(new Set([target.id]));
      expect(await decisionSummaries.routesAmong(siteId, ['orders', 'x'])).toEqual(new Set(['orders']));
      expect(await decisionSummaries.find(target.id, 60, 60)).toEqual(row(target.id, 60, 7));
      expect(await decisionSummaries.totals(period)).toEqual([
        { startSeconds: 60, allowed: 17, denied: 4, observed: 6, dropped: 8, targets: 2 },
        { startSeconds: 120, allowed: 5, denied: 2, observed: 3, dropped: 4, targets: 1 },
      ]);
      const first = await decisionSummaries.rowsWithin(period, undefined, 2);
      expect(first.map(({ targetId }) => targetId)).toEqual([target.id, gone.id].sort());
      expect(await decisionSummaries.rowsWithin(period, first[1], 2)).toEqual([row(target.id, 120, 5)]);
    });
    expect(await write(({ decisionSummaries }) => decisionSummaries.prune(60, 120))).toBe(2);
    await write(({ sites }) => sites.remove(siteId));
    expect(await read(({ decisionSummaries }) => decisionSummaries.totals(period))).toEqual([]);
  });
}

export function signingKeyCases({ read, write, ground }: Bench): void {
  it('signing keys', async () => {
    const { siteId } = await ground();
    const id = newId('signingKey', NOW_MS);
    const key = {
      id,
      siteId,
      purpose: 'bundle',
      state: 'active',
      publicJwk: '{}',
      thumbprint: 't',
      sealedPrivateKey: 'sealed',
      createdAtMs: NOW_MS,
      retireAtMs: null,
    } as const;
    await write(async ({ signingKeys }) => {
      await signingKeys.add(key);
      await signingKeys.change(id, { state: 'retiring', retireAtMs: NOW_MS });
    });
    expect(await read((tx) => tx.signingKeys.ofSite(siteId))).toEqual([
      { ...key, state: 'retiring', retireAtMs: NOW_MS },
    ]);
    expect(await read((tx) => tx.publication.sitesWithRetiredSigners(NOW_MS))).toContain(siteId);
    expect(await read((tx) => tx.publication.sitesWithRetiredSigners(NOW_MS - 1))).not.toContain(siteId);
  });
}

export function policyCases({ read, write, ground }: Bench): void {
  it('enrollment policies', async () => {
    const { siteId } = await ground();
    const source = sourceRow(siteId);
    const policy = policyRow(source, 'billing');
    const deleted = { ...policyRow(source, 'other'), state: 'deleted' } as const;
    await write(async (tx) => {
      await tx.clients.add(clientRow(siteId, 'billing'));
      await tx.clients.add(clientRow(siteId, 'other'));
      await tx.sources.add(source);
      await tx.policies.add(policy);
      await tx.policies.add(deleted);
      await tx.policies.change(policy, { state: 'deactivated' }, NOW_MS);
    });
    await expect(write((tx) => tx.policies.change(policy, {}, NOW_MS))).rejects.toThrow(VersionConflictError);
    await read(async ({ policies }) => {
      expect(await policies.find(policy.id)).toEqual({ ...policy, state: 'deactivated', version: 2 });
      expect((await policies.byReference(policy.reference))?.id).toBe(policy.id);
      expect(await policies.byReference('nothing')).toBeUndefined();
      expect((await policies.ofSite(siteId, ALL)).map(({ id }) => id)).toEqual([policy.id]);
      expect(await policies.ofSite(siteId, { after: policy.id, limit: 9 })).toEqual([]);
      expect(await policies.namedClients(siteId)).toEqual(new Set(['billing']));
    });
    const waiting = { ...policyRow(source, 'billing'), state: 'waiting', sourceRevision: 2 } as const;
    const moving = { ...policyRow(source, 'billing'), nextSourceRevision: 2 };
    await write(async (tx) => {
      await tx.policies.addAll([waiting, moving]);
    });
    const waitingFor = async (revision: number) =>
      (await read((tx) => tx.policies.waitingFor(source.id, revision))).map(({ id }) => id);
    expect([await waitingFor(1), await waitingFor(2)]).toEqual([[], [waiting.id, moving.id].toSorted()]);
    await write((tx) => tx.policies.forgetNext(source.id, 2));
    expect(await waitingFor(2)).toEqual([waiting.id]);
    const lastKeysHere = async () =>
      (await read((tx) => tx.policies.lastKeys())).filter((key) => key.siteId === siteId);
    expect(await lastKeysHere()).toEqual([]);
    const rows = [
      [100, NOW_MS],
      [200, NOW_MS - 60_000],
      [200, NOW_MS - 30_000],
      [200, NOW_MS - 90_000],
      [300, NOW_MS],
    ] as const;
    const keys = rows.map(([seconds, createdAtMs]) =>
      keyRow(siteId, { policyId: policy.id, expiresAtSeconds: NOW_SECONDS + seconds, createdAtMs }),
    );
    const revoked = keys.at(-1);
    await write(async (tx) => {
      await tx.keys.addAll(keys);
      await tx.keys.add(keyRow(siteId, { policyId: deleted.id, expiresAtSeconds: NOW_SECONDS + 400 }));
      if (revoked !== undefined) await tx.keys.change(revoked, { status: 'revoked' }, NOW_MS);
    });
    expect(await lastKeysHere()).toEqual([]);
    await write((tx) => tx.policies.change({ ...policy, version: 2 }, { state: 'active' }, NOW_MS));
    expect(await lastKeysHere()).toEqual([
      // The shortest lifetime among the keys that expire then.
      { siteId, createdAtMs: NOW_MS - 30_000, expiresAtSeconds: NOW_SECONDS + 200 },
    ]);
    expect(await read((tx) => tx.policies.lastKeys(siteId))).toEqual(await lastKeysHere());
    expect(await read((tx) => tx.policies.lastKeys('elsewhere'))).toEqual([]);
    expect(await write((tx) => tx.policies.pruneDeleted('another'))).toBe(0);
    expect(await write((tx) => tx.policies.pruneDeleted())).toBeGreaterThanOrEqual(1);
    expect(await read((tx) => tx.policies.find(deleted.id))).toBeUndefined();
    expect(await read((tx) => tx.policies.find(policy.id))).toBeDefined();
  });
}
