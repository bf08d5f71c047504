/** When bundles ask for observations: while they last, and while no target has a verifier that would reject the bundle. */
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import type { RouteContent } from '../../../src/bundle/format/schema.ts';
import { Distribution } from '../../../src/control/publishing/distribution.ts';
import { sitePropagation } from '../../../src/control/publishing/propagation.ts';
import { siteOverview } from '../../../src/control/publishing/site-overview.ts';
import { SitePublisher } from '../../../src/control/publishing/site-publisher.ts';
import { settleWithheld } from '../../../src/control/publishing/withheld-members.ts';
import { formatTime } from '../../../src/protocol/rfc3339.ts';
import { waitUntil } from '../../support/wait.ts';
import { addTarget, detach, startControl, type TestTarget } from './control-server.ts';
import { ControlWorld, ORDERS_READ, SITE } from './publishing-fixture.ts';

let world: ControlWorld;
let distribution: Distribution;
let publisher: SitePublisher;
beforeEach(async () => {
  world = await ControlWorld.open();
  const { store, signingKeys, clock } = world;
  distribution = new Distribution({ store, nowMs: clock.nowMs });
  publisher = new SitePublisher(SITE, { store, signingKeys, nowMs: clock.nowMs });
});
afterEach(async () => {
  await distribution.close();
  await world.close();
});

const KNOWN = 'accepted_proofs,blocked,enforcement,passport_header';
/** What verifiers of 0.3 send. */
const OLD = undefined;
const DAY = 86_400;
/** Within it every verifier of a target sends a request. */
const ALL_SEEN_MS = 60_000;
const never = new AbortController().signal;

async function publish(): Promise<void> {
  for (;;) {
    const outcome = await publisher.publishChanges();
    if (outcome === 'done') return;
    if (outcome === 'whole_needed') await publisher.publishWhole();
  }
}

/** Stores the route as observed, and publishes it. */
async function observe(seconds: number, changes: Partial<RouteContent> = {}): Promise<void> {
  const until = world.clock.seconds + seconds;
  const members = { enforcement: 'observe', observe_until: formatTime(until) } as const;
  await world.putRoute({ ...ORDERS_READ, ...members, ...changes });
  await world.change(async (tx) => {
    const row = await tx.routes.find(SITE, ORDERS_READ.route_id);
    if (row !== undefined) await tx.routes.change(row, { observeUntilSeconds: until }, world.clock.ms);
  });
  await publish();
}

/** The newest whole bundle: `observe_until` of its route, and of requests that no route matches. */
async function published(): Promise<readonly unknown[]> {
  await publish();
  const { baseRevision } = await world.site();
  const [file] = await world.read((tx) => tx.distribution.files(SITE, baseRevision));
  const jws = await world.read((tx) => tx.distribution.blob(SITE, file?.sha256 ?? ''));
  const { payload } = JSON.parse(String(jws));
  const { routes, unmatched, unmatched_until } = JSON.parse(Buffer.from(payload, 'base64url').toString());
  const [{ enforcement, observe_until }] = routes;
  return [enforcement, observe_until, unmatched, unmatched_until];
}
const NOTHING = [undefined, undefined, undefined, undefined];

const authenticate = ({ token }: TestTarget, members: string | undefined, enforced?: string) =>
  distribution.authenticate(`Bearer ${token}`, { members, enforced });

async function poll(target: TestTarget, members: string | undefined) {
  return distribution.poll(await authenticate(target, members), {}, undefined, never);
}

async function acknowledge(
  target: TestTarget,
  members: string | undefined,
  enforced?: string,
): Promise<void> {
  const { revision, head } = await world.site();
  const reporting = await authenticate(target, members, enforced);
  await distribution.acknowledge(reporting, { revision, head: head ?? '', outcome: 'accepted' });
}

const overview = () => world.read((tx) => siteOverview(tx, SITE, world.clock.ms));

it('an observation is published while it lasts, and left out of the bundles after it', async () => {
  await observe(DAY);
  const until = formatTime(world.clock.seconds + DAY);
  expect(await published()).toEqual(['observe', until, undefined, undefined]);
  expect((await world.site()).observations).toBe('published');
  world.clock.ms += DAY * 1000;
  await world.putClient('billing');
  await world.change((tx) => tx.changes.record(SITE, { kind: 'policy' }, world.clock.ms));
  expect(await published()).toEqual(NOTHING);
  expect((await world.site()).observations).toBe('none');
  expect(await overview()).not.toHaveProperty('observation');
});

it('requests that no route matches are observed in the same way', async () => {
  await world.putRoute(ORDERS_READ);
  const until = world.clock.seconds + DAY;
  await world.change(async (tx) => {
    await tx.sites.change(await world.site(), { unmatchedUntilSeconds: until }, world.clock.ms);
    await tx.changes.record(SITE, { kind: 'policy' }, world.clock.ms);
  });
  expect(await published()).toEqual([undefined, undefined, 'observe', formatTime(until)]);
});

it('the default has no member in a bundle', async () => {
  await world.putRoute({ ...ORDERS_READ, enforcement: 'enforce' } as unknown as RouteContent);
  expect(await published()).toEqual(NOTHING);
});

it('a site is published although its clock was set back, without the observation that is too long now', async () => {
  await world.putRoute(ORDERS_READ);
  await publish();
  await observe(30 * DAY);
  world.clock.ms -= 3000;
  await world.change((tx) => tx.changes.record(SITE, { kind: 'policy' }, world.clock.ms));
  expect(await published()).toEqual(NOTHING);
});

it('a verifier that does not know the members is offered no bundle that has them, and the next one has none', async () => {
  const current = await addTarget(world);
  await observe(DAY);
  await acknowledge(current, KNOWN);
  const joining = await addTarget(world);
  // It is unknown what its verifier knows, until that sends a request.
  await world.change((tx) => tx.changes.record(SITE, { kind: 'policy' }, world.clock.ms));
  expect((await published())[0]).toBe('observe');
  expect((await poll(joining, OLD)).kind).toBe('not_modified');
  expect((await poll(current, KNOWN)).kind).toBe('answer');
  await publish();
  expect((await world.site()).observations).toBe('withheld');
  expect(await published()).toEqual(NOTHING);
  expect((await poll(joining, OLD)).kind).toBe('answer');
  const { observation } = await overview();
  expect(observation).toMatchObject({ routes: 1, withheld_for: [{ target_id: joining.id }] });
});

it('an old verifier that waits for news is not given a bundle that observes', async () => {
  await world.putRoute(ORDERS_READ);
  await publish();
  const target = await addTarget(world);
  await poll(target, KNOWN);
  // An old verifier takes the place of the current one, and waits.
  const old = await authenticate(target, OLD);
  const { revision, head } = await world.site();
  const position = { revision, head: head ?? '', base_revision: revision };
  const first = await distribution.poll(old, position, undefined, never);
  const waiting = distribution.poll(old, { ...position, wait_seconds: 30 }, first.etag, never);
  await observe(DAY);
  await waitUntil(async () => (await world.read((tx) => tx.publication.hasPolicyChange(SITE))) === true);
  await publish();
  const outcome = await waiting;
  expect(outcome.kind).toBe('answer');
  expect(await published()).toEqual(NOTHING);
  if (outcome.kind === 'answer') expect(outcome.answer.revision).toBe((await world.site()).revision);
});

it('they are published again when the verifier is upgraded, or its target is detached', async () => {
  for (const leave of ['upgrade', 'detach']) {
    const target = await addTarget(world);
    await observe(DAY);
    await poll(target, OLD);
    expect(await published()).toEqual(NOTHING);
    if (leave === 'detach') await detach(world, target.id);
    else {
      await acknowledge(target, KNOWN);
      await settleWithheld(world.store, SITE, world.clock.ms);
      expect(await published()).toEqual(NOTHING);
      world.clock.ms += ALL_SEEN_MS;
      await acknowledge(target, KNOWN);
    }
    await settleWithheld(world.store, SITE, world.clock.ms);
    expect((await published())[0]).toBe('observe');
  }
});

it('a new base publishes them to followers too, when the last old verifier was upgraded before it', async () => {
  const target = await addTarget(world);
  await observe(DAY);
  await poll(target, OLD);
  await publish();
  expect((await world.site()).observations).toBe('withheld');
  world.clock.ms += ALL_SEEN_MS;
  await world.change((tx) => tx.propagation.noteTargets([target.id], { lastSeenAtMs: world.clock.ms }));
  await publisher.publishWhole();
  const { observations, policyRevision, revision } = await world.site();
  // A base that only continues the chain would leave followers with what they have.
  expect([observations, policyRevision]).toEqual(['published', revision]);
});

it('the publisher’s sweep publishes them again', async () => {
  const target = await addTarget(world);
  await observe(DAY);
  await poll(target, OLD);
  await publish();
  await detach(world, target.id);
  const control = await startControl(world);
  await waitUntil(async () => (await world.site()).observations === 'published');
  const { revision } = await world.site();
  // Once, not with each sweep.
  await world.putClient('billing');
  await waitUntil(async () => (await world.site()).revision > revision);
  await control.close();
  expect((await world.site()).revision).toBe(revision + 1);
  expect(control.faults).toEqual([]);
});

it('a target shows what it enforces although the bundle says observe, as it says with polls and acknowledgements', async () => {
  await observe(DAY);
  const target = await addTarget(world);
  const shown = async () =>
    (await world.read((tx) => sitePropagation(tx, SITE, world.clock.ms))).targets[0]?.enforced_observations;
  await acknowledge(target, KNOWN, '2 unmatched route=orders-read');
  expect(await shown()).toEqual({ count: 2, unmatched: true, routes: ['orders-read'] });
  await acknowledge(target, KNOWN);
  expect(await shown()).toBeUndefined();
  await acknowledge(target, KNOWN, `9 ${'route=x '.repeat(1000)}`);
  expect(await shown()).toBeUndefined();
  await distribution.poll(await authenticate(target, KNOWN, '1 route=orders-read'), {}, undefined, never);
  // Writes what the polls reported.
  await distribution.close();
  expect(await shown()).toEqual({ count: 1, unmatched: false, routes: ['orders-read'] });
});
