/** Tests sites with more keys than a bundle contains inline: shards that stay byte-identical, and whole bundles beside deltas. */
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { SitePublisher } from '../../../src/control/publishing/site-publisher.ts';
import { describeSnapshot, Follower } from './follower.ts';
import { ControlWorld, ORDERS_READ, SITE } from './publishing-fixture.ts';

let world: ControlWorld;
let publisher: SitePublisher;
let keys: readonly string[];
beforeEach(async () => {
  world = await ControlWorld.open();
  publisher = newPublisher();
  await world.putClient('billing', { orders: 'read' });
  keys = await world.addManyKeys('billing', 12_000);
  await publish();
});
afterEach(() => world.close());

function newPublisher(): SitePublisher {
  const { store, signingKeys, clock } = world;
  return new SitePublisher(SITE, { store, signingKeys, nowMs: clock.nowMs });
}
async function publish(by = publisher): Promise<void> {
  for (;;) {
    const outcome = await by.publishChanges();
    if (outcome === 'done') return;
    if (outcome === 'whole_needed') await by.publishWhole();
  }
}
async function shards() {
  const { baseRevision } = await world.site();
  const files = await world.read((tx) => tx.distribution.files(SITE, baseRevision));
  return files.filter(({ name }) => name !== 'bundle.jws');
}
const key = (index: number): string => keys[index] ?? '';
const wholeNeeded = () => world.change((tx) => tx.hierarchy.advance(SITE, { wholeNeeded: 1 }));

async function expectWholeToSay(statuses: (keyId: string) => string | undefined, ids = keys): Promise<void> {
  const snapshot = await new Follower(world).follow();
  const found = describeSnapshot(snapshot, [], ids, world.clock.seconds).keys;
  const listed = new Map(found.map(({ keyId, status }) => [keyId, status]));
  const wrong = ids.filter((keyId) => listed.get(keyId) !== statuses(keyId));
  expect(wrong.map((keyId) => [keyId, listed.get(keyId)])).toEqual([]);
}

it('are cut in the order of their names; only what changed is written again, also by a publisher that begins anew', async () => {
  const before = await shards();
  expect(before.map(({ keys: count }) => count)).toEqual([5000, 5000, 2000]);
  await expectWholeToSay(() => 'active');
  await world.revokeKey(key(7000));
  await publish();
  await world.putRoute(ORDERS_READ);
  await publish();
  const after = await shards();
  expect(after.map(({ sha256 }, index) => sha256 === before[index]?.sha256)).toEqual([true, false, true]);
  await expectWholeToSay((keyId) => (keyId === key(7000) ? 'revoked' : 'active'));
  const fresh = await world.addKey('billing');
  await publish();
  await wholeNeeded();
  await publish(newPublisher());
  const last = await shards();
  expect(last.map(({ sha256 }, index) => sha256 === after[index]?.sha256)).toEqual([true, true, false]);
  expect(last.map(({ keys: count }) => count)).toEqual([5000, 5000, 2001]);
  await expectWholeToSay((keyId) => (keyId === key(7000) ? 'revoked' : 'active'), [...keys, fresh]);
});

it('what has mostly ended is written again, and neighbours that fit are joined', async () => {
  // A second half that expires later and continues in the same shards.
  const longer = await world.addManyKeys('billing', 4000, 7200);
  await wholeNeeded();
  await publish(newPublisher());
  // The publisher did not know that the last shard had changed: these keys were never published.
  world.clock.ms += 3_600_000;
  await world.addKey('billing', 7200);
  await publish(newPublisher());
  await wholeNeeded();
  await publish(newPublisher());
  expect((await shards()).map(({ keys: count }) => count)).toEqual([4001]);
  await expectWholeToSay(
    (keyId) => (longer.includes(keyId) ? 'active' : undefined),
    [...keys.slice(0, 50), ...longer],
  );
});

it('changes during the making of a whole bundle go out at once, and are in it', async () => {
  const follower = new Follower(world);
  await follower.follow();
  await world.putRoute(ORDERS_READ);
  const { store } = world;
  const published: string[] = [];
  const read = store.read.bind(store);
  let reads = 0;
  // Between the page reads of the whole bundle.
  store.read = async (work) => {
    const result = await read(work);
    reads++;
    if (reads % 5 === 0 && published.length < 6) {
      const revoked = key(published.length * 1999);
      published.push(revoked);
      await world.revokeKey(revoked);
      expect(await publisher.publishChanges()).toBe('whole_needed');
      const [newest] = await read((tx) => tx.distribution.stepsAfter(SITE, published.length, 1));
      expect(newest).toMatchObject({ kind: 'delta' });
    }
    return result;
  };
  while (!(await publisher.publishWhole()));
  store.read = read;
  expect(published.length).toBeGreaterThan(0);
  const snapshot = await follower.follow();
  expect(snapshot.routes.size).toBe(1);
  for (const keyId of published) expect(snapshot.keys.get(keyId)).toMatchObject({ status: 'revoked' });
  await expectWholeToSay((keyId) => (published.includes(keyId) ? 'revoked' : 'active'));
});

it('a delta reads no keys but its own, and only the first whole bundle of a publisher looks at all of them', async () => {
  const { store } = world;
  const housekeep = store.writeUnaudited.bind(store);
  let rangesRead = 0;
  store.writeUnaudited = (lock, work) =>
    housekeep(lock, (tx) => {
      const keysIn = tx.publication.keysIn.bind(tx.publication);
      tx.publication.keysIn = (...given) => {
        rangesRead++;
        return keysIn(...given);
      };
      return work(tx);
    });
  await world.addKey('billing');
  await world.revokeKey(key(0));
  expect(await publisher.publishChanges()).toBe('done');
  expect(rangesRead).toBe(0);
  // Inside the lock, a whole bundle does not read unchanged ranges again.
  await world.putRoute(ORDERS_READ);
  await publish();
  expect(rangesRead).toBe(0);
});
