/** Two instances of Control on one PostgreSQL add to the same row of a target, and lose nothing. */
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { DecisionCounts } from '../../../src/bundle/format/decision-summary.ts';
import { CollectedSummaries } from '../../../src/control/decisions/collected-summaries.ts';
import { decisionSeries } from '../../../src/control/decisions/decision-series.ts';
import { openPostgresStore } from '../../../src/control/store/postgres.ts';
import { TestPostgresServer } from '../../support/harness/postgres-server.ts';
import { addTarget } from '../publishing/control-server.ts';
import { ControlWorld, SITE, TestClock } from '../publishing/publishing-fixture.ts';

const ROUNDS = 10;

let server: TestPostgresServer;
let worlds: ControlWorld[];
const clock = new TestClock();
const { nowMs } = clock;
beforeAll(async () => {
  server = await TestPostgresServer.start();
  const url = await server.createDatabase();
  const stores = [await openPostgresStore({ url, nowMs }), await openPostgresStore({ url, nowMs })];
  worlds = await ControlWorld.instances(stores, clock);
});
afterAll(async () => {
  for (const world of worlds) await world.close();
  await server.stop();
});

it('posts to either instance are counted once', async () => {
  const [world] = worlds;
  if (world === undefined) throw new Error('no instance');
  const { id: targetId } = await addTarget(world);
  const faults: unknown[] = [];
  const instances = worlds.map(
    ({ store }) => new CollectedSummaries({ store, nowMs, onFault: (error) => faults.push(error) }),
  );
  const counts = new DecisionCounts();
  counts.add({
    ...{ outcome: 'denied', reason: 'jti_replay', detail: '' },
    ...{ routeId: undefined, method: 'GET', durationMs: 1 },
  } as const);
  const summary = counts.take();
  for (let round = 0; round < ROUNDS; round++) {
    for (const instance of instances) instance.add({ targetId, siteId: SITE }, summary);
    await Promise.all(instances.map((instance) => instance.close()));
  }
  const read = (step: 'minute' | 'hour') =>
    world.read((tx) =>
      decisionSeries(tx, SITE, { by: 'reason', step, until: new Date(clock.ms).toISOString() }, clock.ms),
    );
  for (const step of ['minute', 'hour'] as const) {
    expect((await read(step)).series).toMatchObject([{ name: 'jti_replay', total: ROUNDS * 2 }]);
  }
  expect(faults).toEqual([]);
});
