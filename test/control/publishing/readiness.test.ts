/** Tests each readiness condition of a key by itself, and the cause that blocks it. */
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Compile } from 'typebox/compile';
import {
  KEY_GRANT,
  KEY_READINESS,
  SIGNING_PROFILE,
} from '../../../src/control/contract/derived-keys-contract.ts';
import { ENROLLED_PROFILE } from '../../../src/control/contract/enrollment-contract.ts';
import { SITE_OVERVIEW } from '../../../src/control/contract/overview-contract.ts';
import { SITE_PROPAGATION } from '../../../src/control/contract/targets-contract.ts';
import { Distribution } from '../../../src/control/publishing/distribution.ts';
import { sitePropagation } from '../../../src/control/publishing/propagation.ts';
import { keyReadiness } from '../../../src/control/publishing/readiness.ts';
import {
  clientSigningProfiles,
  enrolledProfiles,
  keyGrants,
  siteSigningProfiles,
} from '../../../src/control/publishing/signing-profiles.ts';
import { siteOverview } from '../../../src/control/publishing/site-overview.ts';
import { SitePublisher } from '../../../src/control/publishing/site-publisher.ts';
import { addTarget, requestOf, type TestTarget } from './control-server.ts';
import { ControlWorld, ORDERS_READ, ORIGIN, SITE } from './publishing-fixture.ts';

let world: ControlWorld;
let distribution: Distribution;
let publisher: SitePublisher;
let target: TestTarget;
beforeEach(async () => {
  world = await ControlWorld.open();
  const { store, signingKeys, clock } = world;
  distribution = new Distribution({ store, nowMs: clock.nowMs });
  publisher = new SitePublisher(SITE, { store, signingKeys, nowMs: clock.nowMs });
  target = await addTarget(world);
});
afterEach(async () => {
  await distribution.close();
  await world.close();
});

async function publish(): Promise<void> {
  for (;;) {
    const outcome = await publisher.publishChanges();
    if (outcome === 'done') return;
    if (outcome === 'whole_needed') await publisher.publishWhole();
  }
}
async function acknowledge(id = target.id, refusedCode?: string): Promise<void> {
  const { revision, head } = await world.site();
  const outcome =
    refusedCode === undefined
      ? ({ outcome: 'accepted' } as const)
      : ({ outcome: 'refused', code: refusedCode } as const);
  await distribution.acknowledge(requestOf(id), { revision, head: head ?? '', ...outcome });
}

const readinessShape = Compile(KEY_READINESS);
/** Each condition as `state`, or `state!` when it is not satisfied. */
async function states(keyId: string, targetId?: string): Promise<readonly string[]> {
  const view = await readiness(keyId, targetId);
  expect(view.ready).toBe(view.conditions.every(({ satisfied }) => satisfied));
  for (const { satisfied, blocked_by } of view.conditions) expect(blocked_by === undefined).toBe(satisfied);
  return view.conditions.map(({ state, satisfied }) => (satisfied ? state : `${state}!`));
}
async function readiness(keyId: string, targetId?: string) {
  const view = await world.read(async (tx) => {
    const key = await tx.keys.find(keyId);
    if (key === undefined) throw new Error('no such key');
    return keyReadiness(tx, key, targetId, world.clock.ms);
  });
  expect(readinessShape.Check(view)).toBe(true);
  return view;
}
const READY = ['active', 'active', 'active', 'acknowledged', 'current'];

async function readyKey(): Promise<string> {
  await world.putClient('billing', { orders: 'read' });
  await world.putRoute(ORDERS_READ);
  const key = await world.addKey('billing');
  await publish();
  await acknowledge();
  return key;
}

describe('readiness', () => {
  it('holds when all five do, for all targets and for one', async () => {
    const key = await readyKey();
    expect(await states(key)).toEqual(READY);
    expect(await states(key, target.id)).toEqual(READY);
    const { conditions } = await readiness(key);
    expect(conditions.map(({ condition }) => condition)).toEqual([
      'derived_key',
      'route_grant',
      'signing_profile',
      'target_acknowledged',
      'version_current',
    ]);
  });

  it('an active key that no target acknowledged is a propagation state', async () => {
    const key = await readyKey();
    const other = await addTarget(world);
    expect(await states(key)).toEqual(['active', 'active', 'active', 'pending!', 'outdated!']);
    expect(await states(key, target.id)).toEqual(READY);
    expect(await states(key, other.id)).toEqual(['active', 'active', 'active', 'pending!', 'outdated!']);
    await acknowledge(other.id);
    expect(await states(key)).toEqual(READY);
  });

  it('is not held up by other keys that come', async () => {
    const key = await readyKey();
    const second = await world.addKey('billing');
    expect(await states(key)).toEqual(READY);
    expect(await states(second)).toEqual(['active', 'active', 'active', 'pending!', 'current']);
    await publish();
    expect(await states(key)).toEqual(READY);
    expect(await states(second)).toEqual(['active', 'active', 'active', 'pending!', 'current']);
    await acknowledge();
    expect(await states(second)).toEqual(READY);
  });

  it('the latest policy counts, published or not', async () => {
    const key = await readyKey();
    await world.putClient('billing', { orders: 'write' });
    expect(await states(key)).toEqual(['active', 'active', 'active', 'acknowledged', 'publishing!']);
    await publish();
    expect(await states(key)).toEqual(['active', 'active', 'active', 'acknowledged', 'outdated!']);
    await acknowledge();
    expect(await states(key)).toEqual(READY);
  });

  it('says when a target refuses, and with which code', async () => {
    const key = await readyKey();
    await world.putRoute(ORDERS_READ);
    await publish();
    await acknowledge(target.id, 'refused_by_policy');
    const { conditions } = await readiness(key);
    expect(conditions[4]?.blocked_by).toMatch(/refused revision 2: refused_by_policy/);
  });

  it('a target that is ahead has nothing of it', async () => {
    const key = await readyKey();
    const lost = { revision: 5_000_000, head: 'A'.repeat(43), outcome: 'accepted' } as const;
    await expect(distribution.acknowledge(requestOf(target.id), lost)).rejects.toMatchObject({
      code: 'revision_out_of_range',
    });
    expect(await states(key)).toEqual(['active', 'active', 'active', 'pending!', 'outdated!']);
    await acknowledge();
    expect(await states(key)).toEqual(READY);
  });

  it('a key that ended is not ready, whatever else holds', async () => {
    const key = await readyKey();
    world.clock.ms += 3_600_000;
    expect(await states(key)).toEqual(['expired!', 'active', 'active', 'acknowledged', 'current']);
    const second = await world.addKey('billing');
    await publish();
    await acknowledge();
    await world.revokeKey(second);
    expect((await states(second))[0]).toBe('revoked!');
  });

  it('without a grant, and without a target, says so', async () => {
    const key = await readyKey();
    await world.putClient('billing', {});
    expect((await states(key)).slice(0, 3)).toEqual(['active', 'inactive!', 'inactive!']);
    await world.change(async (tx) => {
      const row = await tx.targets.find(target.id);
      if (row !== undefined) await tx.targets.change(row, { state: 'detached' }, world.clock.ms);
    });
    await publish();
    expect((await states(key)).slice(3)).toEqual(['no_target!', 'no_target!']);
    await expect(readiness(key, target.id)).rejects.toMatchObject({ code: 'not_found' });
  });
});

describe('profiles and grants', () => {
  const profileShape = Compile(SIGNING_PROFILE);
  const enrolledShape = Compile(ENROLLED_PROFILE);
  const grantShape = Compile(KEY_GRANT);

  beforeEach(async () => {
    await world.putClient('billing', { orders: 'read', stock: 'write' });
    await world.putRoute({ ...ORDERS_READ, signed_headers: ['x-b', 'x-a'] });
    await world.putRoute({
      ...ORDERS_READ,
      route_id: 'orders-write',
      method: 'POST',
      path_template: '/v1/orders',
    });
    await world.putRoute(
      {
        ...ORDERS_READ,
        route_id: 'stock',
        resource: 'stock',
        path_template: '/v1/stock',
        origins: [ORIGIN],
        body: 'unbound',
      },
      'client:somebody-else',
    );
    await world.putRoute({
      ...ORDERS_READ,
      route_id: 'other',
      resource: 'other',
      path_template: '/v1/other',
    });
  });

  it('of a client: one for each route of a granted resource, active where it could be called', async () => {
    const profiles = await world.read((tx) => clientSigningProfiles(tx, SITE, 'billing'));
    for (const profile of profiles) expect(profileShape.Check(profile)).toBe(true);
    expect(profiles.map(({ route_id, state }) => `${route_id} ${state}`)).toEqual([
      'orders-read active',
      'orders-write inactive',
      'stock inactive',
    ]);
    expect(profiles[0]).toEqual({
      client_id: 'billing',
      name: 'orders-read',
      route_id: 'orders-read',
      method: 'GET',
      path_template: '/v1/orders/{order_id}',
      audience: ORIGIN,
      origins: [ORIGIN],
      signed_headers: ['x-a', 'x-b'],
      body: 'bound',
      state: 'active',
    });
    expect(profiles[1]?.blocked_by).toMatch(/needs write/);
    expect(profiles[2]).toMatchObject({ body: 'unbound', blocked_by: expect.stringMatching(/no source/) });
  });

  it('a workload gets those that it can use, in the shape of its contract', async () => {
    const profiles = await world.read((tx) => enrolledProfiles(tx, SITE, 'billing'));
    expect(profiles.map(({ route_id }) => route_id)).toEqual(['orders-read']);
    for (const profile of profiles) expect(enrolledShape.Check(profile)).toBe(true);
  });

  it('key-level grants are the client’s, no more and no less', async () => {
    const grants = await world.read((tx) => keyGrants(tx, { siteId: SITE, clientId: 'billing' }));
    for (const grant of grants) expect(grantShape.Check(grant)).toBe(true);
    expect(grants.map((of) => `${of.route_id} ${of.needed} ${of.granted} ${of.state}`)).toEqual([
      'orders-read read read active',
      'orders-write write read inactive',
      'stock read write active',
    ]);
    expect(await world.read((tx) => keyGrants(tx, { siteId: SITE, clientId: 'unknown' }))).toEqual([]);
  });

  it('of a site come page by page, each once', async () => {
    await world.putClient('audit', { orders: 'write' });
    await world.putClient('zzz', { other: 'read' });
    const seen: string[] = [];
    let after: { clientId: string; routeId: string } | undefined;
    for (;;) {
      const page = await world.read((tx) => siteSigningProfiles(tx, SITE, { after, limit: 2 }));
      seen.push(...page.map(({ client_id, route_id }) => `${client_id} ${route_id}`));
      const last = page.at(-1);
      if (last === undefined) break;
      after = { clientId: last.client_id, routeId: last.route_id };
    }
    expect(seen).toEqual([
      'audit orders-read',
      'audit orders-write',
      'billing orders-read',
      'billing orders-write',
      'billing stock',
      'zzz other',
    ]);
    const one = await world.read((tx) => siteSigningProfiles(tx, SITE, { clientId: 'zzz', limit: 9 }));
    expect(one.map(({ route_id }) => route_id)).toEqual(['other']);
    const ofRoute = { routeId: 'orders-read', limit: 9 };
    const callers = await world.read((tx) => siteSigningProfiles(tx, SITE, ofRoute));
    expect(callers.map(({ client_id }) => client_id)).toEqual(['audit', 'billing']);
  });
});

describe('propagation', () => {
  const shape = Compile(SITE_PROPAGATION);
  const propagation = async () => {
    const view = await world.read((tx) => sitePropagation(tx, SITE, world.clock.ms));
    expect(shape.Check(view)).toBe(true);
    return view;
  };

  it('shows who is current, behind, refusing, silent, and never there', async () => {
    const [behind, refusing, never] = [
      await addTarget(world),
      await addTarget(world),
      await addTarget(world),
    ];
    await publish();
    for (const { id } of [target, behind, refusing]) await acknowledge(id);
    world.clock.ms += 1000;
    const publishedMs = world.clock.ms;
    await world.putClient('billing');
    await publish();
    world.clock.ms += 1000;
    await acknowledge();
    await acknowledge(refusing.id, 'signatures_insufficient');
    world.clock.ms += 60_000;
    await acknowledge();
    await world.putRoute(ORDERS_READ);
    const view = await propagation();
    const of = (id: string) => view.targets.find(({ target_id }) => target_id === id);
    expect(of(target.id)).toMatchObject({ state: 'current', behind_revisions: 0, silent: false });
    expect(of(behind.id)).toMatchObject({
      state: 'behind',
      behind_revisions: 1,
      behind_since: new Date(publishedMs).toISOString(),
      silent: true,
    });
    expect(of(refusing.id)).toMatchObject({
      state: 'refusing',
      refused: { revision: 2, code: 'signatures_insufficient' },
    });
    expect(of(never.id)).toMatchObject({ state: 'never', behind_revisions: 2, silent: true });
    expect(view).toMatchObject({
      revision: 2,
      held_everywhere: 0,
      unpublished_since: new Date(world.clock.ms).toISOString(),
    });
    const overview = await world.read((tx) => siteOverview(tx, SITE, world.clock.ms));
    expect(Compile(SITE_OVERVIEW).Check(overview)).toBe(true);
    expect(overview).toMatchObject({
      revision: 2,
      targets: { attached: 4, current: 1, behind: 3, silent: 2 },
      publishing_sources: [],
      pending_enrollments: 0,
      policies_not_renewed: 0,
    });
  });

  it('shows since when a revocation holds everywhere, and for how many it waits', async () => {
    const key = await readyKey();
    const other = await addTarget(world);
    await world.revokeKey(key);
    const revocation = async () => (await propagation()).revocations.find(({ key_id }) => key_id === key);
    expect(await revocation()).toMatchObject({ waiting_for: 2 });
    await publish();
    await acknowledge();
    expect(await revocation()).toMatchObject({ revision: 2, waiting_for: 1 });
    world.clock.ms += 5000;
    await acknowledge(other.id);
    const heldMs = world.clock.ms;
    world.clock.ms += 5000;
    await acknowledge();
    expect(await revocation()).toMatchObject({
      waiting_for: 0,
      held_everywhere_since: new Date(heldMs).toISOString(),
    });
  });
});
