/** Tests what Control keeps of the verifiers that share a target's token, and how many replay stores a site's verifiers use. */
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Acknowledgements } from '../../../src/control/publishing/acknowledgements.ts';
import { Distribution } from '../../../src/control/publishing/distribution.ts';
import { sitePropagation } from '../../../src/control/publishing/propagation.ts';
import {
  MAX_INSTANCES,
  nextInstances,
  type SeenInstance,
} from '../../../src/control/publishing/target-instances.ts';
import { addTarget, detach, requestOf, type TestTarget } from './control-server.ts';
import { ControlWorld, SITE } from './publishing-fixture.ts';

const never = new AbortController().signal;
/** Longer than any instance is quiet. */
const SILENT_MS = 70_001;
const FORGOTTEN_MS = 600_000;
const idOf = (name: string | number) => String(name).padStart(22, '0');

describe('the instances of a site', () => {
  let world: ControlWorld;
  let target: TestTarget;
  beforeEach(async () => {
    world = await ControlWorld.open();
    target = await addTarget(world);
  });
  afterEach(() => world.close());

  /** Each header is that of one poll; closing writes what was seen. */
  async function poll(token: string, ...headers: readonly string[]): Promise<void> {
    const distribution = new Distribution({ store: world.store, nowMs: world.clock.nowMs });
    for (const instance of headers) {
      const reporting = await distribution.authenticate(`Bearer ${token}`, { instance });
      await distribution.poll(reporting, {}, undefined, never);
    }
    await distribution.close();
  }
  const header = (name: string, store: string) => `${idOf(name)} version=0.4.0 replay_store=${store}`;
  async function shown() {
    const { replay_stores, targets } = await world.read((tx) => sitePropagation(tx, SITE, world.clock.ms));
    const instances = targets.flatMap((one) => one.instances);
    return [
      replay_stores,
      instances.map(({ instance_id, silent }) => `${instance_id}${silent ? ' silent' : ''}`),
    ];
  }

  it('are shown one by one, and use as many stores as they say', async () => {
    await poll(target.token, header('a', idOf('redis')), header('b', idOf('redis')));
    expect(await shown()).toEqual([1, [idOf('a'), idOf('b')]]);
    await poll((await addTarget(world)).token, header('c', idOf('other')));
    expect((await shown())[0]).toBe(2);
  });

  it('say what each enforces although the bundle says observe', async () => {
    const distribution = new Distribution({ store: world.store, nowMs: world.clock.nowMs });
    const reports = [
      { instance: header('a', 'memory'), enforced: '1 route=orders-read' },
      { instance: header('b', 'memory') },
    ];
    for (const report of reports) {
      const reporting = await distribution.authenticate(`Bearer ${target.token}`, report);
      await distribution.poll(reporting, {}, undefined, never);
    }
    await distribution.close();
    const [shown] = (await world.read((tx) => sitePropagation(tx, SITE, world.clock.ms))).targets;
    expect(shown?.instances.map(({ enforced_observations }) => enforced_observations)).toEqual([1, 0]);
  });

  it('have a store each in memory, and none while they do not know it', async () => {
    await poll(target.token, header('a', 'memory'), header('b', 'memory'), header('c', 'unknown'));
    expect((await shown())[0]).toBe(2);
  });

  it('do not count when they are silent, and are forgotten', async () => {
    await poll(target.token, header('a', idOf('redis')));
    world.clock.ms += SILENT_MS;
    await poll(target.token, header('b', idOf('other')));
    expect(await shown()).toEqual([1, [`${idOf('a')} silent`, idOf('b')]]);
    world.clock.ms += FORGOTTEN_MS;
    expect(await shown()).toEqual([0, []]);
    await poll(target.token, header('c', idOf('other')));
    expect(await world.read((tx) => tx.targetInstances.ofSite(SITE, 0))).toHaveLength(1);
  });

  it('are none of a report in another form, nor of a detached target', async () => {
    await poll(
      target.token,
      'a',
      `${header('a', 'memory')} `,
      header('a', 'redis'),
      `${idOf('a')} version= replay_store=memory`,
    );
    expect(await shown()).toEqual([0, []]);
    const distribution = new Distribution({ store: world.store, nowMs: world.clock.nowMs });
    const instance = header('a', 'memory');
    const reporting = await distribution.authenticate(`Bearer ${target.token}`, { instance });
    await distribution.poll(reporting, {}, undefined, never);
    await detach(world, target.id);
    await distribution.close();
    expect(await world.read((tx) => tx.targetInstances.ofSite(SITE, 0))).toEqual([]);
  });

  it('stay when others come first, again and again', async () => {
    const acknowledgements = new Acknowledgements({ store: world.store, nowMs: world.clock.nowMs });
    const note = (id: string, replayStore?: string) => {
      const instance = { instanceId: idOf(id), version: '0.4.0', replayStore, signing: undefined };
      acknowledgements.noteSeen({ ...requestOf(target.id), instance }, true, undefined);
    };
    for (let round = 0; round < 3; round++) {
      if (round > 0) for (let n = 0; n < MAX_INSTANCES; n++) note(`${round} ${n}`.replace(' ', '-'));
      note('a', idOf('redis'));
      note('b', idOf('other'));
      // It writes what it has seen.
      await acknowledgements.close();
      world.clock.ms += SILENT_MS - 1;
    }
    expect((await shown())[0]).toBe(2);
  });

  it('go with their site', async () => {
    await poll(target.token, header('a', 'memory'));
    await world.change((tx) => tx.sites.remove(SITE));
    expect(await world.read((tx) => tx.targetInstances.ofSite(SITE, 0))).toEqual([]);
  });
});

describe('of more instances than are kept', () => {
  const NOW_MS = 1_000_000_000;
  const seen = (from: number, count: number): readonly SeenInstance[] =>
    Array.from({ length: count }, (_, n) => ({
      ...{ targetId: 'tgt_1', siteId: SITE, instanceId: idOf(from + n), version: '0.4.0' },
      ...{ replayStore: 'memory', revision: undefined, enforcedObservations: 0, signing: undefined },
    }));
  const names = (instances: readonly { readonly instanceId: string }[]) =>
    instances.map(({ instanceId }) => Number(instanceId)).toSorted((a, b) => a - b);

  it('live ones stay, whatever comes', () => {
    const { kept: full } = nextInstances([], seen(0, MAX_INSTANCES), NOW_MS);
    const { ended, kept } = nextInstances(full, seen(1000, MAX_INSTANCES), NOW_MS + 1);
    expect(kept).toHaveLength(MAX_INSTANCES);
    expect(names(kept)).toEqual(names(full));
    expect(ended).toEqual([]);
  });

  it('the longest silent give way', () => {
    const { kept: old } = nextInstances([], seen(0, 10), NOW_MS);
    const { kept: full } = nextInstances(old, seen(10, MAX_INSTANCES - 10), NOW_MS + 1);
    const { ended, kept } = nextInstances(full, seen(1000, 5), NOW_MS + SILENT_MS);
    expect(kept).toHaveLength(MAX_INSTANCES);
    expect(names(ended).every((name) => name < 10)).toBe(true);
    expect(ended).toHaveLength(5);
    expect(names(kept).slice(-5)).toEqual([1000, 1001, 1002, 1003, 1004]);
  });
});
