import { expect, it } from '@jest/globals';
import { newId } from '../../../../src/control/domain/resource-identifiers.ts';
import { VersionConflictError } from '../../../../src/control/store/repositories/records.ts';
import {
  challengeRow,
  clientRow,
  enrollmentRow,
  keyRow,
  policyRow,
  revisionRow,
  siteRow,
  sourceRow,
  targetRow,
  VERSIONED,
} from '../../../support/control/store-rows.ts';
import { NOW_MS } from '../databases.ts';
import { ALL, type Bench, below, EVERYTHING } from './bench.ts';

export function hierarchyCases({ read, write, ground }: Bench): void {
  it('environments and fleets are found, changed and removed', async () => {
    const { environmentId, fleetId } = await ground();
    const environment = await read((tx) => tx.environments.find(environmentId));
    const fleet = await read((tx) => tx.fleets.find(fleetId));
    expect(environment).toEqual({ id: environmentId, name: environmentId, ...VERSIONED });
    expect(fleet).toEqual({ id: fleetId, environmentId, name: fleetId, ...VERSIONED });
    const first = { id: environmentId, version: 1 };
    await write(async (tx) => {
      await tx.environments.change(first, { name: `${environmentId} 2` }, NOW_MS + 5);
      await tx.fleets.change({ id: fleetId, version: 1 }, { name: 'eu' }, NOW_MS + 5);
    });
    await expect(write((tx) => tx.environments.change(first, {}, NOW_MS))).rejects.toThrow(
      VersionConflictError,
    );
    await expect(write((tx) => tx.fleets.change({ id: fleetId, version: 1 }, {}, NOW_MS))).rejects.toThrow(
      VersionConflictError,
    );
    const [named, inIt, other] = await read(async (tx) => [
      await tx.hierarchy.environmentByName(`${environmentId} 2`),
      await tx.hierarchy.fleetByName(environmentId, 'eu'),
      await tx.hierarchy.fleetByName('env_other', 'eu'),
    ]);
    expect([named?.id, named?.version, named?.updatedAtMs]).toEqual([environmentId, 2, NOW_MS + 5]);
    expect([inIt?.id, inIt?.version, other]).toEqual([fleetId, 2, undefined]);
    const empty = newId('environment', NOW_MS);
    await write(async (tx) => {
      await tx.environments.add({ id: empty, name: empty, ...VERSIONED });
      await tx.fleets.add({ id: empty, environmentId: empty, name: 'f', ...VERSIONED });
    });
    expect(await read((tx) => tx.fleets.list({ environmentId: empty }, ALL))).toHaveLength(1);
    expect(await write((tx) => tx.fleets.remove(empty))).toBe(true);
    expect(await write((tx) => tx.environments.remove(empty))).toBe(true);
    expect(await write((tx) => tx.fleets.remove(empty))).toBe(false);
    expect(await write((tx) => tx.environments.remove(empty))).toBe(false);
    expect(await read((tx) => tx.fleets.list({ environmentId: empty }, ALL))).toEqual([]);
  });

  it('sites are found, changed, moved on without a version, and within reach', async () => {
    const a = await ground();
    const b = await ground();
    await write(async (tx) => {
      const first = { id: a.siteId, version: 1 };
      await tx.sites.change(first, { displayName: 'Shop' }, NOW_MS + 1);
      await tx.hierarchy.advance(a.siteId, { revision: 3, head: 'head', baseRevision: 2, wholeNeeded: 1 });
    });
    const gone = write((tx) => tx.sites.change({ id: a.siteId, version: 1 }, {}, NOW_MS));
    await expect(gone).rejects.toThrow(VersionConflictError);
    await read(async ({ hierarchy, sites }) => {
      expect(await sites.find(a.siteId)).toMatchObject({ displayName: 'Shop', version: 2, revision: 3 });
      expect(await sites.find(b.siteId)).toMatchObject(siteRow(b.fleetId, b.siteId));
      expect(await hierarchy.placeOfSite(a.siteId)).toEqual(a);
      expect(await hierarchy.placeOfSite('nowhere')).toBeUndefined();
      expect(await hierarchy.hasIssuerUrl(siteRow('', a.siteId).issuerUrl)).toBe(true);
      expect(await hierarchy.hasIssuerUrl('https://nowhere.example')).toBe(false);
      const others = await hierarchy.otherSites(a.siteId);
      expect(others).toContainEqual({ id: b.siteId, origins: ['https://api.shop.example'] });
      expect(others.map(({ id }) => id)).not.toContain(a.siteId);
      expect((await sites.list({ fleetId: a.fleetId }, ALL)).map(({ id }) => id)).toEqual([a.siteId]);
    });
  });

  it('routes are found by a text of their definitions', async () => {
    const a = await ground();
    const b = await ground();
    const route = { routeId: 'orders', observeUntilSeconds: null, ...VERSIONED };
    const definition = '{"accepted_proofs":["dpop"]}';
    await write(async ({ routes }) => {
      await routes.add({ ...route, siteId: a.siteId, definition });
      await routes.add({ ...route, siteId: a.siteId, routeId: 'prices', definition: '{}' });
      await routes.add({ ...route, siteId: b.siteId, definition });
    });
    await read(async ({ hierarchy }) => {
      expect(await hierarchy.routesWith([a.siteId], '"dpop"')).toEqual([definition]);
      expect(await hierarchy.routesWith([a.siteId, b.siteId], '"dpop"')).toEqual([definition, definition]);
    });
  });

  it('lists show what is within reach', async () => {
    const a = await ground();
    const b = await ground();
    const c = await ground();
    const sitesIn = async (reach: Parameters<typeof below>[0]) =>
      (await read((tx) => tx.hierarchy.reachedSites(below(reach), ALL))).map(({ id }) => id);
    expect(await sitesIn({ siteIds: [a.siteId] })).toEqual([a.siteId]);
    expect(await sitesIn({ fleetIds: [b.fleetId] })).toEqual([b.siteId]);
    expect(await sitesIn({ environmentIds: [c.environmentId] })).toEqual([c.siteId]);
    expect(await sitesIn({ siteIds: [b.siteId], environmentIds: [a.environmentId] })).toEqual(
      [a.siteId, b.siteId].sort(),
    );
    expect(await sitesIn({})).toEqual([]);
    await read(async ({ environments, hierarchy }) => {
      const everywhere = (await hierarchy.reachedSites(EVERYTHING, ALL)).map(({ id }) => id);
      expect(everywhere).toEqual(expect.arrayContaining([a.siteId, b.siteId, c.siteId]));
      const after = { after: a.siteId, limit: 1 };
      expect(await hierarchy.reachedSites(below({ siteIds: [a.siteId] }), after)).toEqual([]);
      const one = await hierarchy.reachedEnvironments(below({ environmentIds: [b.environmentId] }), ALL);
      expect(one.map(({ id }) => id)).toEqual([b.environmentId]);
      expect(await hierarchy.reachedEnvironments(below({ siteIds: [b.siteId] }), ALL)).toEqual([]);
      const all = await hierarchy.reachedEnvironments(EVERYTHING, ALL);
      expect(all.length).toBeGreaterThanOrEqual(3);
      expect(await environments.list({}, ALL)).toEqual(all);
    });
  });

  it('a site goes with all that is in it', async () => {
    const { fleetId, siteId } = await ground();
    const source = sourceRow(siteId);
    const policy = policyRow(source, 'billing');
    await write(async (tx) => {
      await tx.clients.add(clientRow(siteId, 'billing'));
      await tx.clients.putGrants([
        {
          siteId,
          clientId: 'billing',
          resource: 'orders',
          access: 'read',
          createdAtMs: NOW_MS,
        },
      ]);
      await tx.targets.add(targetRow(siteId, 'edge'));
      await tx.sources.add(source);
      await tx.sourceRevisions.add(revisionRow(source, 1, 'active'));
      await tx.sources.claimAudience(`audience-${siteId}`, siteId);
      const fetched = { sourceId: source.id, revision: 1, jwks: '{}', fetchedAtMs: NOW_MS };
      await tx.sources.putKeySet(fetched);
      await tx.policies.add(policy);
      await tx.enrollments.addChallenge(challengeRow(siteId, policy.id));
      await tx.enrollments.add(enrollmentRow(policy));
      await tx.keys.add(keyRow(siteId));
      await tx.changes.record(siteId, { kind: 'policy' }, NOW_MS);
    });
    expect(await write((tx) => tx.sites.remove(siteId))).toBe(true);
    expect(await write((tx) => tx.sites.remove(siteId))).toBe(false);
    await read(async (tx) => {
      expect(await tx.sites.find(siteId)).toBeUndefined();
      expect(await tx.sources.keySet(source.id, 1)).toBeUndefined();
      expect(await tx.sources.ownerOfAudience(`audience-${siteId}`)).toBeUndefined();
      expect(await tx.keys.ofSite(siteId, ALL)).toEqual([]);
      expect(await tx.changes.pending(siteId, 9)).toEqual([]);
    });
    expect(await write((tx) => tx.fleets.remove(fleetId))).toBe(true);
  });
}
