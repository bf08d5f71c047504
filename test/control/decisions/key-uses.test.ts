/** Tests what Control keeps of the last uses of keys that targets report, on both databases, and what a stolen target token can do. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { MAX_KEY_USES } from '../../../src/bundle/format/key-use.ts';
import { ReportedKeyUses } from '../../../src/control/decisions/reported-key-uses.ts';
import { DerivedKeys } from '../../../src/control/keys/derived-keys.ts';
import type { ControlStore } from '../../../src/control/store/port.ts';
import { keyRow } from '../../support/control/store-rows.ts';
import { addTargets, detach } from '../publishing/control-server.ts';
import { ControlWorld, SITE, TestClock } from '../publishing/publishing-fixture.ts';
import { databaseKinds } from '../store/databases.ts';

const MINUTE = 60;
const OTHER_SITE = 'other';

describe.each(databaseKinds())('on $name', (kind) => {
  let world: ControlWorld;
  let reported: ReportedKeyUses;
  let [edge, west]: string[] = [];
  let nowSeconds: number;
  const own = keyRow(SITE);
  const foreign = keyRow(OTHER_SITE);

  beforeAll(() => kind.start());
  afterAll(() => kind.stop());
  beforeEach(async () => {
    const clock = new TestClock();
    const open = await kind.fresh();
    [world] = (await ControlWorld.instances([await open(clock)], clock)) as [ControlWorld];
    await world.addSite(OTHER_SITE, 'https://other.example');
    await world.change((tx) => tx.keys.addAll([own, foreign]));
    [edge, west] = (await addTargets(world, 2)).map(({ id }) => id);
    nowSeconds = Math.floor(clock.ms / 60_000) * MINUTE;
    reported = new ReportedKeyUses({ store: world.store, nowMs: clock.nowMs });
  });
  afterEach(() => world.close());

  const report = (target = '', ...uses: (readonly [keyId: string, usedAtSeconds: number])[]) =>
    reported.report(
      target,
      uses.map(([keyId, usedAtSeconds]) => ({ keyId, usedAtSeconds })),
    );
  const keys = () => new DerivedKeys(world.store, world.clock.nowMs);
  const lastUsed = async (keyId = own.keyId) => {
    const { last_used_at: at } = await keys().key(keyId);
    return at === undefined ? undefined : Date.parse(at) / 1000 - nowSeconds;
  };

  it('shows the latest use at any target, and that of each', async () => {
    expect(await lastUsed()).toBeUndefined();
    expect(await keys().lastUsed(own.keyId)).toEqual({ key_id: own.keyId, targets: [] });
    await report(edge, [own.keyId, nowSeconds - 120]);
    await report(west, [own.keyId, nowSeconds - 60]);
    expect(await lastUsed()).toBe(-60);
    const { targets } = await keys().lastUsed(own.keyId);
    expect(
      targets.map(({ last_used_at: at, target_id: id }) => [id, Date.parse(at) / 1000 - nowSeconds]),
    ).toEqual([
      [west, -60],
      [edge, -120],
    ]);
    const [listed] = await keys().ofSite(SITE, {}, { after: undefined, limit: 10 });
    expect(listed).toMatchObject({
      key_id: own.keyId,
      version: own.version,
      last_used_at: expect.any(String),
    });
  });

  it('takes the latest time of a post, in any order, and never goes back', async () => {
    await report(
      edge,
      [own.keyId, nowSeconds - 120],
      [own.keyId, nowSeconds - 60],
      [own.keyId, nowSeconds - 180],
    );
    await report(edge, [own.keyId, nowSeconds - 600]);
    expect(await lastUsed()).toBe(-60);
  });

  describe('a stolen target token', () => {
    it('says nothing of keys of other sites, of names that are no keys, or of the future', async () => {
      const names = Array.from({ length: MAX_KEY_USES - 2 }, (_, n) => `dk_made_up_${n}`);
      await report(
        edge,
        [foreign.keyId, nowSeconds],
        [own.keyId, nowSeconds + 1e9],
        ...names.map((name) => [name, nowSeconds] as const),
      );
      expect([await lastUsed(), await lastUsed(foreign.keyId)]).toEqual([0, undefined]);
      const known = await world.read((tx) => tx.keyUses.lastOf([own.keyId, foreign.keyId, ...names]));
      expect([...known.keys()]).toEqual([own.keyId]);
    });

    it('does not hide what another target reported', async () => {
      await report(west, [own.keyId, nowSeconds - 120]);
      await report(edge, [own.keyId, nowSeconds + 1e9]);
      const { targets } = await keys().lastUsed(own.keyId);
      expect(targets.map(({ target_id: id }) => id)).toEqual([edge, west]);
    });

    it('says nothing once its target is detached, but what it said before stays', async () => {
      await report(edge, [own.keyId, nowSeconds - 120]);
      await detach(world, edge ?? '');
      await report(edge, [own.keyId, nowSeconds]);
      expect(await lastUsed()).toBe(-120);
    });

    it('is limited to some posts a minute, and limits no other target', async () => {
      for (let post = 0; post < 256; post++) await report(edge, [own.keyId, nowSeconds]);
      await expect(report(edge, [own.keyId, nowSeconds])).rejects.toMatchObject({ code: 'rate_limited' });
      await report(west, [own.keyId, nowSeconds]);
    });
  });

  it('lets a few posts of a target wait, and keeps neither another target nor a change of the site waiting', async () => {
    let release = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const store: Pick<ControlStore, 'writeUnaudited'> = {
      writeUnaudited: async (lock, work) => {
        await held;
        return world.store.writeUnaudited(lock, work);
      },
    };
    reported = new ReportedKeyUses({ store, nowMs: world.clock.nowMs });
    const posts = Array.from({ length: 9 }, () => report(edge, [own.keyId, nowSeconds]));
    await expect(posts.at(-1)).rejects.toMatchObject({ code: 'rate_limited' });
    const others = report(west, [own.keyId, nowSeconds]);
    // Under the lock of the site.
    await world.change((tx) => tx.keys.find(own.keyId));
    release();
    await Promise.all([...posts.slice(0, -1), others]);
    expect((await keys().lastUsed(own.keyId)).targets).toHaveLength(2);
  });
});
