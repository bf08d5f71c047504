/** Tests when bundles list blocked callers: once every attached target reports that it knows the member. */
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { BlockedCallers } from '../../../src/control/configuration/blocked-callers.ts';
import { settleBlocked } from '../../../src/control/publishing/blocked-publication.ts';
import { Distribution } from '../../../src/control/publishing/distribution.ts';
import { SitePublisher } from '../../../src/control/publishing/site-publisher.ts';
import { waitUntil } from '../../support/wait.ts';
import { addTarget, detach, startControl, type TestTarget } from './control-server.ts';
import { ControlWorld, ISSUER_URL, ORDERS_READ, SITE } from './publishing-fixture.ts';

let world: ControlWorld;
let callers: BlockedCallers;
let distribution: Distribution;
let publisher: SitePublisher;
beforeEach(async () => {
  world = await ControlWorld.open();
  const { store, signingKeys, clock } = world;
  const { nowMs } = clock;
  callers = new BlockedCallers({ store, nowMs });
  distribution = new Distribution({ store, nowMs });
  publisher = new SitePublisher(SITE, { store, signingKeys, nowMs });
  await world.putRoute(ORDERS_READ);
});
afterEach(async () => {
  await distribution.close();
  await world.close();
});

const OPERATION = { actor: 'bootstrap', requestId: 'req_1' };
const BILLING = { issuer: ISSUER_URL, subject: 'client:billing' };
const HOLDER = { issuer: ISSUER_URL, holder_thumbprint: 'A'.repeat(43) };
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

/** Member `blocked` of the newest whole bundle. */
async function published(): Promise<unknown> {
  await publish();
  const { baseRevision } = await world.site();
  const [file] = await world.read((tx) => tx.distribution.files(SITE, baseRevision));
  const jws = await world.read((tx) => tx.distribution.blob(SITE, file?.sha256 ?? ''));
  const { payload } = JSON.parse(String(jws));
  return JSON.parse(Buffer.from(payload, 'base64url').toString()).blocked;
}

/** Polls, then acknowledges what is published. */
async function report({ token }: TestTarget, members?: string): Promise<void> {
  await publish();
  const target = await distribution.authenticate(`Bearer ${token}`, { members });
  await distribution.poll(target, {}, undefined, never);
  const { revision, head } = await world.site();
  await distribution.acknowledge(target, { revision, head: head ?? '', outcome: 'accepted' });
}

const waitingFor = async () =>
  (await callers.list(SITE, { after: undefined, limit: 10 })).map(({ waiting_for: targets }) =>
    targets?.map(({ target_id: id }) => id),
  );

it('a block is published at once when every target knows the member, and withdrawn by an unblock', async () => {
  const target = await addTarget(world);
  await report(target, 'other, blocked');
  expect(await published()).toBeUndefined();
  const blocked = await callers.block(SITE, BILLING, OPERATION);
  expect(blocked.view).not.toHaveProperty('waiting_for');
  await callers.block(SITE, HOLDER, OPERATION);
  expect(await published()).toEqual([HOLDER, BILLING]);
  await callers.unblock(SITE, BILLING, OPERATION);
  expect(await published()).toEqual([HOLDER]);
  await callers.unblock(SITE, HOLDER, OPERATION);
  expect(await published()).toBeUndefined();
});

it('without targets it is published at once', async () => {
  await callers.block(SITE, BILLING, OPERATION);
  expect(await published()).toEqual([BILLING]);
});

it('targets that are new or old hold the first block back, and are named, until they report the member', async () => {
  const [current, old, unseen] = [await addTarget(world), await addTarget(world), await addTarget(world)];
  await report(current, 'blocked');
  await report(old);
  const { view } = await callers.block(SITE, BILLING, OPERATION);
  expect(view.waiting_for?.map(({ target_id: id }) => id)).toEqual([old.id, unseen.id].toSorted());
  await world.addSource(1, 'publishing');
  expect(await published()).toBeUndefined();
  await detach(world, unseen.id);
  await settleBlocked(world.store, SITE, world.clock.ms);
  expect(await waitingFor()).toEqual([[old.id]]);
  expect(await published()).toBeUndefined();
  await report(old, 'blocked');
  expect(await waitingFor()).toEqual([[old.id]]);
  world.clock.ms += ALL_SEEN_MS;
  await report(old, 'blocked');
  await waitUntil(async () => (await world.site()).blockedPublished === 1);
  expect(await published()).toEqual([BILLING]);
  expect(await waitingFor()).toEqual([undefined]);
});

it('verifiers of two versions that share a target hold it back while the old one still sends requests', async () => {
  const shared = await addTarget(world);
  await report(shared);
  await callers.block(SITE, BILLING, OPERATION);
  for (let round = 0; round < 5; round++) {
    world.clock.ms += ALL_SEEN_MS / 2;
    await report(shared);
    await report(shared, 'blocked');
    expect(await waitingFor()).toEqual([[shared.id]]);
  }
  for (const step of [ALL_SEEN_MS - 1, 1]) {
    world.clock.ms += step;
    await report(shared, 'blocked');
  }
  await waitUntil(async () => (await world.site()).blockedPublished === 1);
});

it('one poll of an old verifier among those of new ones holds it back', async () => {
  const shared = await addTarget(world);
  for (const members of ['blocked', undefined, 'blocked']) {
    const target = await distribution.authenticate(`Bearer ${shared.token}`, { members });
    await distribution.poll(target, {}, undefined, never);
  }
  await distribution.close();
  const { view } = await callers.block(SITE, BILLING, OPERATION);
  expect(view.waiting_for?.map(({ target_id: id }) => id)).toEqual([shared.id]);
});

it.each(['poll', 'acknowledge'])(
  '%s: reports what its own request lacks, though a new verifier sends another one',
  async (request) => {
    const shared = await addTarget(world);
    await publish();
    const { revision, head } = await world.site();
    const old = await distribution.authenticate(`Bearer ${shared.token}`);
    await distribution.authenticate(`Bearer ${shared.token}`, { members: 'blocked' });
    if (request === 'poll') await distribution.poll(old, {}, undefined, never);
    else await distribution.acknowledge(old, { revision, head: head ?? '', outcome: 'accepted' });
    await distribution.close();
    const row = await world.read((tx) => tx.targets.find(shared.id));
    expect(row?.blockedLackedAtMs).toBe(world.clock.ms);
  },
);

it('an old target that is attached later neither withdraws a block nor holds the next one back', async () => {
  await callers.block(SITE, BILLING, OPERATION);
  expect(await published()).toEqual([BILLING]);
  await report(await addTarget(world));
  const { view } = await callers.block(SITE, HOLDER, OPERATION);
  expect(view).not.toHaveProperty('waiting_for');
  expect(await published()).toEqual([HOLDER, BILLING]);
});

it('a poll alone reports the members, and the publisher’s sweep settles the block', async () => {
  const target = await addTarget(world);
  await callers.block(SITE, BILLING, OPERATION);
  const polling = await distribution.authenticate(`Bearer ${target.token}`, { members: 'blocked' });
  await distribution.poll(polling, {}, undefined, never);
  // Writes what the polls reported.
  await distribution.close();
  const control = await startControl(world);
  await waitUntil(async () => (await world.site()).blockedPublished === 1);
  await control.close();
  expect(await published()).toEqual([BILLING]);
});
