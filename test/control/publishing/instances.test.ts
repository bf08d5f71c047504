/** Tests two instances of Control on one PostgreSQL: one publishes, both distribute, and the other takes over. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from '@jest/globals';
import type { PollQuery } from '../../../src/bundle/format/distribution-contract.ts';
import { SitePublisher } from '../../../src/control/publishing/site-publisher.ts';
import { openPostgresStore } from '../../../src/control/store/postgres.ts';
import { TestPostgresServer } from '../../support/harness/postgres-server.ts';
import { waitUntil } from '../../support/wait.ts';
import { addTarget, requestOf, startControl } from './control-server.ts';
import { Follower } from './follower.ts';
import { ControlWorld, ORDERS_READ, SITE, TestClock } from './publishing-fixture.ts';

let server: TestPostgresServer;
let worlds: ControlWorld[];
beforeAll(async () => {
  server = await TestPostgresServer.start();
});
afterAll(() => server.stop());
beforeEach(async () => {
  const clock = new TestClock();
  const url = await server.createDatabase();
  const open = () => openPostgresStore({ url, nowMs: clock.nowMs });
  worlds = await ControlWorld.instances([await open(), await open()], clock);
});
afterEach(async () => {
  for (const world of worlds) await world.close();
});

function instance(index: number): ControlWorld {
  const world = worlds[index];
  if (world === undefined) throw new Error('no such instance');
  return world;
}

async function publish(world: ControlWorld): Promise<void> {
  const { store, signingKeys, clock } = world;
  const publisher = new SitePublisher(SITE, { store, signingKeys, nowMs: clock.nowMs });
  for (;;) {
    const outcome = await publisher.publishChanges();
    if (outcome === 'done') return;
    if (outcome === 'whole_needed') await publisher.publishWhole();
  }
}

it('two that publish at the same time make one chain, whose whole bundle says what its deltas say', async () => {
  const [first, second] = [instance(0), instance(1)];
  await first.putClient('billing');
  const keys: string[] = [];
  for (let round = 0; round < 6; round++) {
    keys.push(await first.addKey('billing'), await second.addKey('billing'));
    if (round % 3 === 2) await second.putRoute(ORDERS_READ);
    await Promise.all([publish(first), publish(second)]);
  }
  await publish(first);
  const steps = await first.read((tx) => tx.distribution.stepsAfter(SITE, 0, 100));
  for (const [index, step] of steps.entries()) {
    if (index > 0) expect(step.previousHead).toBe(steps[index - 1]?.head);
  }
  const snapshot = await new Follower(second).follow();
  for (const key of keys) expect(snapshot.keys.get(key)).toBeDefined();
});

it('targets of either hear of what the leader publishes, and of what the next one does', async () => {
  const [first, second] = [instance(0), instance(1)];
  const controls = [await startControl(first), await startControl(second)];
  try {
    await first.putClient('billing');
    const targets = [await addTarget(first), await addTarget(second)];
    const never = new AbortController().signal;
    const poll = async (index: number, query: PollQuery, etag?: string) => {
      const result = await controls[index]?.distribution.poll(
        requestOf(targets[index]?.id ?? ''),
        query,
        etag,
        never,
      );
      if (result?.kind !== 'answer') throw new Error('no answer');
      return result;
    };
    const follow = async (index: number, atLeast: number): Promise<void> => {
      let etag: string | undefined;
      for (;;) {
        const { answer, etag: given } = await poll(index, { wait_seconds: 30 }, etag);
        etag = given;
        const { revision, head } = answer;
        if (revision < atLeast) continue;
        await controls[index]?.distribution.acknowledge(requestOf(targets[index]?.id ?? ''), {
          revision,
          head,
          outcome: 'accepted',
        });
        return;
      }
    };
    const source = await second.addSource(1, 'publishing');
    const awaited = async () =>
      (await first.read((tx) => tx.sourceRevisions.find(source, 1)))?.awaitedRevision;
    await waitUntil(async () => typeof (await awaited()) === 'number');
    await Promise.all([follow(0, (await awaited()) ?? 0), follow(1, (await awaited()) ?? 0)]);
    await waitUntil(
      async () => (await second.read((tx) => tx.sourceRevisions.find(source, 1)))?.state === 'active',
    );
    const { revision } = await second.site();
    await controls[0]?.stopPublisher();
    await second.addKey('billing');
    await Promise.all([follow(0, revision + 1), follow(1, revision + 1)]);
    expect(controls.flatMap(({ faults }) => faults)).toEqual([]);
  } finally {
    for (const control of controls) await control.close();
  }
});
