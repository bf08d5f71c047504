/** When bundles have routes that accept further proofs, on both databases: while no target has a verifier that would reject them. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { RouteContent } from '../../../src/bundle/format/schema.ts';
import { Distribution } from '../../../src/control/publishing/distribution.ts';
import { siteOverview } from '../../../src/control/publishing/site-overview.ts';
import { SitePublisher } from '../../../src/control/publishing/site-publisher.ts';
import { settleWithheld } from '../../../src/control/publishing/withheld-members.ts';
import { newSigningKey } from '../../support/fixtures/bundle-content.ts';
import { databaseKinds } from '../store/databases.ts';
import { addTarget, detach, type TestTarget } from './control-server.ts';
import { Follower } from './follower.ts';
import { ControlWorld, ORDERS_READ, ORIGIN, SITE, TestClock } from './publishing-fixture.ts';

const KNOWN = 'accepted_proofs,blocked,enforcement,passport_header';
/** What verifiers of before this version send. */
const OLD = 'blocked,enforcement,passport_header';
/** Within it every verifier of a target sends a request. */
const ALL_SEEN_MS = 60_000;
const never = new AbortController().signal;

const KEYED: RouteContent = {
  ...ORDERS_READ,
  route_id: 'keyed',
  path_template: '/v1/keyed',
  accepted_proofs: ['http-message-signatures'],
};
const EITHER: RouteContent = {
  ...ORDERS_READ,
  route_id: 'either',
  path_template: '/v1/either',
  accepted_proofs: ['transcript-v1', 'http-message-signatures'],
};
/** Their members without `dpop` would be a fault. */
const DPOP: RouteContent = {
  ...ORDERS_READ,
  route_id: 'dpop',
  path_template: '/v1/dpop',
  accepted_proofs: ['dpop'],
  unbound: ['route', 'site', 'query'],
  dpop_nonce: 'required',
  oauth_revocation: 'token_lifetime',
};
const DPOP_TOO: RouteContent = {
  ...DPOP,
  route_id: 'dpop-too',
  path_template: '/v1/dpop-too',
  accepted_proofs: ['transcript-v1', 'dpop'],
};
const { jwk, algorithm: alg } = newSigningKey().publicKey;
const OAUTH_ISSUER = {
  ...{ siteId: SITE, issuer: 'https://login.shop.example', definition: '{"trust_domain":"shop.example"}' },
  keys: JSON.stringify([{ kid: 'key-1', alg, jwk }]),
};
/** Takes the requests of {@link KEYED}, if that is not published. */
const ALL: RouteContent = { ...ORDERS_READ, route_id: 'all', path_template: '/v1/{name}' };

describe.each(databaseKinds())('$name', (kind) => {
  let world: ControlWorld;
  let distribution: Distribution;
  let publisher: SitePublisher;
  beforeAll(() => kind.start());
  afterAll(() => kind.stop());
  beforeEach(async () => {
    const clock = new TestClock();
    const open = await kind.fresh();
    const [opened] = await ControlWorld.instances([await open({ nowMs: clock.nowMs })], clock);
    if (opened === undefined) throw new Error('no world');
    world = opened;
    const { signingKeys, store } = world;
    distribution = new Distribution({ store, nowMs: clock.nowMs });
    publisher = new SitePublisher(SITE, { store, signingKeys, nowMs: clock.nowMs });
    for (const route of [KEYED, EITHER, DPOP, DPOP_TOO, ALL]) await world.putRoute(route);
    await world.putClient('billing', { orders: 'read' });
    const times = { createdAtMs: clock.ms, updatedAtMs: clock.ms };
    await world.change((tx) => tx.oauthIssuers.add({ ...OAUTH_ISSUER, version: 1, ...times }));
    await publish();
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

  /** How a verifier that reads the newest bundle treats requests for each path. */
  async function published(): Promise<readonly unknown[]> {
    await publish();
    const { oauthIssuers, routes } = await new Follower(world).follow();
    const requests = ['/v1/other', '/v1/either', '/v1/keyed', '/v1/dpop', '/v1/dpop-too'].map((path) => {
      const match = routes.match('GET', ORIGIN, path);
      if (match.kind !== 'route') return match.kind;
      const { acceptedProofs, freshness, routeId } = match.route;
      return [routeId, freshness.kind, ...(acceptedProofs ?? ['by default'])];
    });
    return [...requests, [...oauthIssuers.keys()]];
  }
  const PUBLISHED = [
    ['all', 'bounded', 'by default'],
    ['either', 'bounded', 'transcript-v1', 'http-message-signatures'],
    ['keyed', 'bounded', 'http-message-signatures'],
    ['dpop', 'bounded', 'dpop'],
    ['dpop-too', 'bounded', 'transcript-v1', 'dpop'],
    [OAUTH_ISSUER.issuer],
  ];
  const WITHHELD = [
    ['all', 'bounded', 'by default'],
    ['either', 'bounded', 'by default'],
    // Denies every request.
    ['keyed', 'unknown', 'by default'],
    ['dpop', 'unknown', 'by default'],
    ['dpop-too', 'bounded', 'by default'],
    [],
  ];

  const authenticate = ({ token }: TestTarget, members: string) =>
    distribution.authenticate(`Bearer ${token}`, { members });

  async function poll(target: TestTarget, members: string) {
    return distribution.poll(await authenticate(target, members), {}, undefined, never);
  }

  async function acknowledge(target: TestTarget, members: string): Promise<void> {
    const { revision, head } = await world.site();
    const reporting = await authenticate(target, members);
    await distribution.acknowledge(reporting, { revision, head: head ?? '', outcome: 'accepted' });
  }

  const proofs = async () =>
    (await world.read((tx) => siteOverview(tx, SITE, world.clock.ms))).accepted_proofs;

  it('the formats are published, and deltas continue such a bundle', async () => {
    expect(await published()).toEqual(PUBLISHED);
    expect((await world.site()).acceptedProofs).toBe('published');
    expect(await proofs()).toEqual({});
    const follower = new Follower(world);
    await follower.follow();
    const keyId = await world.addKey('billing');
    await publish();
    const { keys, routes } = await follower.follow();
    expect([follower.taken, keys.get(keyId)]).toEqual([['whole', 'delta'], expect.anything()]);
    expect([...(routes.find('keyed')?.acceptedProofs ?? [])]).toEqual(KEYED.accepted_proofs);
  });

  it('a verifier that does not know them gets a bundle in which no route accepts more than before', async () => {
    const current = await addTarget(world);
    await acknowledge(current, KNOWN);
    const joining = await addTarget(world);
    expect((await poll(joining, OLD)).kind).toBe('not_modified');
    expect((await poll(current, KNOWN)).kind).toBe('answer');
    expect(await published()).toEqual(WITHHELD);
    expect((await world.site()).acceptedProofs).toBe('withheld');
    expect((await poll(joining, OLD)).kind).toBe('answer');
    expect(await proofs()).toEqual({ withheld_for: [{ target_id: joining.id, name: joining.id }] });
    // Later bundles leave them out, too.
    await world.change((tx) => tx.changes.record(SITE, { kind: 'policy' }, world.clock.ms));
    expect(await published()).toEqual(WITHHELD);
  });

  it('a target whose verifiers are of two versions counts as old, until each was upgraded', async () => {
    const target = await addTarget(world);
    await poll(target, OLD);
    expect(await published()).toEqual(WITHHELD);
    await acknowledge(target, KNOWN);
    await settleWithheld(world.store, SITE, world.clock.ms);
    expect(await published()).toEqual(WITHHELD);
    world.clock.ms += ALL_SEEN_MS;
    await acknowledge(target, KNOWN);
    await settleWithheld(world.store, SITE, world.clock.ms);
    expect(await published()).toEqual(PUBLISHED);
  });

  it('they are published again when the old target is detached', async () => {
    const target = await addTarget(world);
    await poll(target, OLD);
    expect(await published()).toEqual(WITHHELD);
    await detach(world, target.id);
    await settleWithheld(world.store, SITE, world.clock.ms);
    expect(await published()).toEqual(PUBLISHED);
  });

  it('a new base publishes them to followers too, when the last old verifier was upgraded before it', async () => {
    const target = await addTarget(world);
    await poll(target, OLD);
    expect(await published()).toEqual(WITHHELD);
    world.clock.ms += ALL_SEEN_MS;
    await world.change((tx) => tx.propagation.noteTargets([target.id], { lastSeenAtMs: world.clock.ms }));
    await publisher.publishWhole();
    const { acceptedProofs, policyRevision, revision } = await world.site();
    // A base that only continues the chain would leave followers with what they have.
    expect([acceptedProofs, policyRevision]).toEqual(['published', revision]);
  });

  it('an old verifier changes nothing on a site without such routes', async () => {
    for (const { path_template, route_id } of [KEYED, EITHER, DPOP, DPOP_TOO]) {
      await world.putRoute({ ...ORDERS_READ, path_template, route_id });
    }
    await world.change((tx) => tx.oauthIssuers.noteFetch(OAUTH_ISSUER, { keys: null }));
    await publish();
    expect([(await world.site()).acceptedProofs, await proofs()]).toEqual(['none', undefined]);
    const { revision } = await world.site();
    expect((await poll(await addTarget(world), OLD)).kind).toBe('answer');
    await publish();
    expect((await world.site()).revision).toBe(revision);
  });
});
