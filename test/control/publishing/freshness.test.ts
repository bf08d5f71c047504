/** Tests periodic freshness statements, and the retention of published documents. */
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { FreshnessIssuer, intervalMs } from '../../../src/control/publishing/freshness-renewal.ts';
import { pruneDocuments } from '../../../src/control/publishing/publisher.ts';
import { SitePublisher } from '../../../src/control/publishing/site-publisher.ts';
import { ControlWorld, ORDERS_READ, SITE } from './publishing-fixture.ts';

let world: ControlWorld;
beforeEach(async () => {
  world = await ControlWorld.open();
});
afterEach(() => world.close());

async function publish(siteId = SITE): Promise<void> {
  const { store, signingKeys, clock } = world;
  const publisher = new SitePublisher(siteId, { store, signingKeys, nowMs: clock.nowMs });
  for (;;) {
    const outcome = await publisher.publishChanges();
    if (outcome === 'done') return;
    if (outcome === 'whole_needed') await publisher.publishWhole();
  }
}
function newIssuer(): FreshnessIssuer {
  const { store, signingKeys, clock } = world;
  return new FreshnessIssuer({ store, signingKeys, nowMs: clock.nowMs });
}
const asOfSeconds = async (siteId = SITE) =>
  (await world.read((tx) => tx.distribution.freshness(siteId)))?.asOfSeconds;

describe('statements', () => {
  it.each<[stalenessSeconds: number | undefined, expectedMs: number]>([
    [undefined, 3000],
    [300, 3000],
    [9, 3000],
    [6, 2000],
    [3, 1000],
    [1, 1000],
  ])('for a smallest staleness of %p s come every %p ms', (stalenessSeconds, expectedMs) => {
    expect(intervalMs(stalenessSeconds)).toBe(expectedMs);
  });

  it('come when they are due, for each site by its own strictest route, and not before it is published', async () => {
    await world.addSite('other', 'https://control.shop.example/sites/other');
    await world.addSite('unpublished', 'https://control.shop.example/sites/unpublished');
    await world.putRoute({ ...ORDERS_READ, max_staleness_seconds: 3 });
    await publish();
    await publish('other');
    const issuer = newIssuer();
    expect(await issuer.issueDue(0)).toEqual(['other', SITE]);
    expect(await issuer.issueDue(999)).toEqual([]);
    world.clock.ms += 1000;
    expect(await issuer.issueDue(1000)).toEqual([SITE]);
    expect([await asOfSeconds(), await asOfSeconds('other')]).toEqual([
      world.clock.seconds,
      world.clock.seconds - 1,
    ]);
    expect(await issuer.issueDue(3000)).toEqual(['other', SITE]);
    // A route with a stricter freshness limit.
    issuer.forget('other');
    expect(await issuer.issueDue(6000)).toEqual(['other', SITE]);
  });

  it('never go beyond the oldest change that is not published', async () => {
    await publish();
    const issuer = newIssuer();
    world.clock.ms += 2000;
    await world.putClient('billing');
    const changedSeconds = world.clock.seconds;
    world.clock.ms += 2500;
    await world.putClient('shipping');
    world.clock.ms += 60_000;
    await issuer.issueDue(0);
    expect(await asOfSeconds()).toBe(changedSeconds);
    await publish();
    await issuer.issueDue(10_000);
    expect(await asOfSeconds()).toBe(world.clock.seconds);
  });
});

describe('what is kept', () => {
  const files = (revision: number) => world.read((tx) => tx.distribution.files(SITE, revision));
  const prune = () =>
    world.store.writeUnaudited({ kind: 'site', siteId: SITE }, (tx) =>
      pruneDocuments(tx, SITE, world.clock.ms),
    );

  it('the newest whole bundle and the one before, younger ones, and the steps from there on', async () => {
    for (let round = 0; round < 4; round++) {
      await world.putRoute(ORDERS_READ);
      await publish();
      await prune();
    }
    expect((await files(1)).length).toBeGreaterThan(0);
    const contents = (await files(1)).map(({ sha256 }) => sha256);
    world.clock.ms += 5 * 60_000;
    await prune();
    expect([await files(1), await files(2)]).toEqual([[], []]);
    for (const revision of [3, 4]) expect(await files(revision)).toHaveLength(1);
    for (const sha256 of contents) {
      expect(await world.read((tx) => tx.distribution.hasBlob(SITE, sha256))).toBe(false);
    }
    const steps = await world.read((tx) => tx.distribution.stepsAfter(SITE, 0, 10));
    expect(steps.map(({ revision }) => revision)).toEqual([3, 4]);
  });

  it('a whole bundle from the future no longer than others', async () => {
    world.clock.ms += 86_400_000;
    await publish();
    world.clock.ms -= 86_400_000;
    for (let round = 0; round < 3; round++) {
      await world.putRoute(ORDERS_READ);
      await publish();
    }
    world.clock.ms += 5 * 60_000;
    await prune();
    expect(await files(1)).toEqual([]);
  });
});
