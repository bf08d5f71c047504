/** Tests publishing of one site: following deltas and links always gives the same result as the whole bundle. */
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { type Publication, SitePublisher } from '../../../src/control/publishing/site-publisher.ts';
import { parseStrictJson } from '../../../src/protocol/strict-json.ts';
import { describeSnapshot, Follower } from './follower.ts';
import { ControlWorld, ORDERS_READ, SITE } from './publishing-fixture.ts';

let world: ControlWorld;
let publications: Publication[];
beforeEach(async () => {
  world = await ControlWorld.open();
  publications = [];
});
afterEach(() => world.close());

function newPublisher(): SitePublisher {
  const { store, signingKeys, clock } = world;
  const onPublished = (publication: Publication) => publications.push(publication);
  return new SitePublisher(SITE, { store, signingKeys, nowMs: clock.nowMs, onPublished });
}

/** Publishes until no change is left. */
async function publishAll(publisher: SitePublisher): Promise<void> {
  for (;;) {
    const outcome = await publisher.publishChanges();
    if (outcome === 'done') return;
    if (outcome === 'whole_needed') await publisher.publishWhole();
  }
}

const kinds = () => publications.map(({ kind }) => kind);
const statement = async () => {
  const row = await world.read((tx) => tx.distribution.freshness(SITE));
  const document: unknown = JSON.parse(row?.document ?? '{}');
  const payload = typeof document === 'object' && document !== null ? Reflect.get(document, 'payload') : '';
  return { row, content: parseStrictJson(Buffer.from(String(payload), 'base64url').toString()) };
};

describe('what is published', () => {
  it('first is a whole bundle, then deltas for clients and keys, then a whole one for anything else', async () => {
    const publisher = newPublisher();
    const follower = new Follower(world);
    await world.putClient('billing', { orders: 'read' });
    await publishAll(publisher);
    await follower.follow();
    const key = await world.addKey('billing');
    await publishAll(publisher);
    await world.putRoute(ORDERS_READ);
    await publishAll(publisher);
    await world.revokeKey(key);
    await publishAll(publisher);
    expect(kinds()).toEqual(['bundle', 'delta', 'bundle', 'delta']);
    const snapshot = await follower.follow();
    expect(follower.taken).toEqual(['whole', 'delta', 'whole', 'delta']);
    expect(snapshot.keys.get(key)).toMatchObject({ status: 'revoked' });
    expect((await world.site()).policyRevision).toBe(3);
    expect(await world.read((tx) => tx.keys.find(key))).toMatchObject({
      listedRevision: 2,
      revokedRevision: 4,
    });
    expect(await world.read((tx) => tx.changes.pending(SITE, 10))).toEqual([]);
  });

  it('nothing comes of nothing: no revision without a change, none for a key that ended before it was listed', async () => {
    const publisher = newPublisher();
    await world.putClient('billing');
    await publishAll(publisher);
    await publishAll(publisher);
    await world.addKey('billing', 60);
    world.clock.ms += 60_000;
    await publishAll(publisher);
    expect(kinds()).toEqual(['bundle']);
    expect(await world.read((tx) => tx.changes.pending(SITE, 10))).toEqual([]);
  });

  it('a client that is gone takes a whole bundle, and its revoked keys leave with it', async () => {
    const publisher = newPublisher();
    const follower = new Follower(world);
    await world.putClient('billing');
    const key = await world.addKey('billing');
    await publishAll(publisher);
    await world.revokeKey(key);
    await publishAll(publisher);
    await follower.follow();
    await world.change(async (tx) => {
      await tx.clients.remove(SITE, 'billing');
      await tx.changes.record(SITE, { kind: 'client', clientId: 'billing' }, world.clock.ms);
    });
    await publishAll(publisher);
    const snapshot = await follower.follow();
    expect(snapshot.keys.client('billing')).toBeUndefined();
    expect(snapshot.keys.get(key)).toBeUndefined();
    // They also stay absent after the next whole bundle.
    await world.change((tx) => tx.hierarchy.advance(SITE, { wholeNeeded: 1 }));
    await publishAll(newPublisher());
    expect((await follower.whole()).keys.get(key)).toBeUndefined();
  });

  it('a whole bundle that changes nothing comes with a link, after what waits as a delta', async () => {
    const publisher = newPublisher();
    const follower = new Follower(world);
    await world.putClient('billing');
    await publishAll(publisher);
    await follower.follow();
    await world.change((tx) => world.signingKeys.rotate(tx, SITE, 'bundle', { nowMs: world.clock.ms }));
    const key = await world.addKey('billing');
    await publishAll(publisher);
    await follower.follow();
    expect(follower.taken).toEqual(['whole', 'delta', 'link']);
    expect((await follower.whole()).keys.get(key)).toBeDefined();
    expect((await world.site()).wholeNeeded).toBe(0);
  });

  it('at half its life a whole bundle is followed by another', async () => {
    const publisher = newPublisher();
    await publishAll(publisher);
    world.clock.ms += 15 * 86_400_000 - 1;
    await publishAll(publisher);
    expect(kinds()).toEqual(['bundle']);
    world.clock.ms += 1;
    await publishAll(publisher);
    expect(kinds()).toEqual(['bundle', 'link']);
    const follower = new Follower(world);
    expect((await follower.follow()).expiresAtSeconds).toBe(world.clock.seconds + 30 * 86_400);
  });

  it.each(['whole bundle', 'delta'])('a %s from the future is followed by a bundle of now', async (kind) => {
    const publisher = newPublisher();
    const follower = new Follower(world);
    await world.putClient('billing');
    const key = await world.addKey('billing', 3600);
    await publishAll(publisher);
    await follower.follow();
    const start = world.clock.ms;
    world.clock.ms += 400 * 86_400_000;
    if (kind === 'delta') await world.putClient('shipping');
    else await world.putRoute(ORDERS_READ);
    await publisher.publishChanges();
    if (kind === 'whole bundle') await publisher.publishWhole();
    expect((await follower.follow()).freshAsOfSeconds).toBe(world.clock.seconds);
    world.clock.ms = start + 1000;
    expect(await world.read((tx) => tx.publication.sitesDue(world.clock.ms))).toEqual([SITE]);
    // An instance with an empty cache does the same.
    await publishAll(kind === 'delta' ? newPublisher() : publisher);
    const snapshot = await follower.follow();
    expect(snapshot.freshAsOfSeconds).toBe(world.clock.seconds);
    expect(snapshot.expiresAtSeconds).toBe(world.clock.seconds + 30 * 86_400);
    // The key had expired by the clock that was ahead.
    expect(snapshot.keys.get(key)).toBeDefined();
    expect((await statement()).row?.asOfSeconds).toBe(world.clock.seconds);
    const { revision } = await world.site();
    await publishAll(publisher);
    await publishAll(newPublisher());
    expect((await world.site()).revision).toBe(revision);
    expect(await world.read((tx) => tx.publication.sitesDue(world.clock.ms))).toEqual([]);
  });

  it('goes above the floor, and without a link where followers would refuse the step', async () => {
    const publisher = newPublisher();
    await publishAll(publisher);
    await world.change((tx) => tx.hierarchy.advance(SITE, { floorRevision: 1_000_001, wholeNeeded: 1 }));
    await publishAll(publisher);
    expect(publications.at(-1)).toMatchObject({ revision: 1_000_002, kind: 'bundle' });
    await world.change((tx) => tx.hierarchy.advance(SITE, { floorRevision: 1_000_100, wholeNeeded: 1 }));
    await publishAll(publisher);
    expect(publications.at(-1)).toMatchObject({ revision: 1_000_101, kind: 'link' });
  });

  it('while content waits for its whole bundle, a revocation goes out and a new key does not', async () => {
    const publisher = newPublisher();
    const follower = new Follower(world);
    await world.putClient('billing');
    const old = await world.addKey('billing');
    await publishAll(publisher);
    await follower.follow();
    await world.putRoute(ORDERS_READ);
    await world.putClient('shipping');
    const fresh = await world.addKey('shipping');
    await world.revokeKey(old);
    expect(await publisher.publishChanges()).toBe('whole_needed');
    const between = await follower.follow();
    expect(between.keys.get(old)).toMatchObject({ status: 'revoked' });
    expect(between.keys.get(fresh)).toBeUndefined();
    await publishAll(publisher);
    const after = await follower.follow();
    expect(after.keys.get(fresh)).toMatchObject({ clientId: 'shipping' });
    expect(after.keys.get(old)).toMatchObject({ status: 'revoked' });
  });
});

describe('freshness', () => {
  it('comes with each publication, and is no later than what waits', async () => {
    const publisher = newPublisher();
    await publishAll(publisher);
    expect((await statement()).content).toMatchObject({ revision: 1, as_of: '2026-11-21T04:00:00Z' });
    const start = world.clock.ms;
    await world.putClient('billing');
    const key = await world.addKey('billing');
    await publishAll(publisher);
    world.clock.ms = start + 5000;
    await world.putRoute(ORDERS_READ);
    world.clock.ms = start + 9000;
    await world.revokeKey(key);
    await publisher.publishChanges();
    expect((await statement()).content).toMatchObject({ revision: 3, as_of: '2026-11-21T04:00:05Z' });
    await publishAll(publisher);
    expect((await statement()).content).toMatchObject({ revision: 4, as_of: '2026-11-21T04:00:09Z' });
  });
});

describe('two that believe to lead', () => {
  it('make one chain, in any order', async () => {
    const [first, second] = [newPublisher(), newPublisher()];
    const follower = new Follower(world);
    await world.putClient('billing');
    await Promise.all([publishAll(first), publishAll(second)]);
    await follower.follow();
    const keys: string[] = [];
    for (let round = 0; round < 5; round++) {
      keys.push(await world.addKey('billing'));
      if (round === 2) await world.putRoute(ORDERS_READ);
      await Promise.all([publishAll(first), publishAll(second)]);
    }
    const steps = await world.read((tx) => tx.distribution.stepsAfter(SITE, 0, 100));
    for (const [index, step] of steps.entries()) {
      expect(step.previousHead).toBe(steps[index - 1]?.head ?? null);
    }
    const snapshot = await follower.follow();
    for (const key of keys) expect(snapshot.keys.get(key)).toBeDefined();
  });
});

type Mutation =
  | { readonly kind: 'client'; readonly name: string; readonly access: 'read' | 'write' }
  | { readonly kind: 'key'; readonly name: string; readonly lifetimeSeconds: number }
  | { readonly kind: 'revoke'; readonly pick: number }
  | { readonly kind: 'route' }
  | { readonly kind: 'rotate' }
  | { readonly kind: 'floor' }
  | { readonly kind: 'time'; readonly seconds: number }
  | { readonly kind: 'publish' }
  | { readonly kind: 'restart' };

const names = fc.constantFrom('billing', 'shipping', 'stock');
const mutation: fc.Arbitrary<Mutation> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('client' as const),
      name: names,
      access: fc.constantFrom('read' as const, 'write' as const),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('key' as const),
      name: names,
      lifetimeSeconds: fc.constantFrom(60, 3600),
    }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('revoke' as const), pick: fc.nat(100) }) },
  { weight: 1, arbitrary: fc.constant({ kind: 'route' as const }) },
  { weight: 1, arbitrary: fc.constant({ kind: 'rotate' as const }) },
  { weight: 1, arbitrary: fc.constant({ kind: 'floor' as const }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('time' as const), seconds: fc.constantFrom(1, 59, 61) }),
  },
  { weight: 4, arbitrary: fc.constant({ kind: 'publish' as const }) },
  { weight: 1, arbitrary: fc.constant({ kind: 'restart' as const }) },
);

class Scenario {
  readonly world: ControlWorld;
  readonly clients = new Set<string>();
  readonly keys: string[] = [];
  readonly revoked = new Set<string>();
  publisher: SitePublisher;

  constructor(of: ControlWorld, publisher: SitePublisher) {
    this.world = of;
    this.publisher = publisher;
  }

  async apply(step: Mutation): Promise<void> {
    switch (step.kind) {
      case 'client':
        this.clients.add(step.name);
        return this.world.putClient(step.name, { orders: step.access });
      case 'key':
        if (this.clients.has(step.name))
          this.keys.push(await this.world.addKey(step.name, step.lifetimeSeconds));
        return;
      case 'revoke': {
        const key = this.keys[step.pick % Math.max(1, this.keys.length)];
        if (key === undefined || this.revoked.has(key)) return;
        this.revoked.add(key);
        return this.world.revokeKey(key);
      }
      case 'route':
        return this.world.putRoute(ORDERS_READ);
      case 'rotate':
        await this.world.change((tx) =>
          this.world.signingKeys.rotate(tx, SITE, 'bundle', { nowMs: this.world.clock.ms }),
        );
        return;
      case 'floor': {
        const { revision } = await this.world.site();
        await this.world.change((tx) =>
          tx.hierarchy.advance(SITE, { floorRevision: revision + 7, wholeNeeded: 1 }),
        );
        return;
      }
      case 'time':
        this.world.clock.ms += step.seconds * 1000;
        return;
      case 'publish':
        return publishAll(this.publisher);
      case 'restart':
        this.publisher = newPublisher();
    }
  }
}

it('following by deltas and links comes to what the newest whole bundle and the rows say', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(mutation, { minLength: 5, maxLength: 40 }), async (steps) => {
      await world.close();
      world = await ControlWorld.open();
      const scenario = new Scenario(world, newPublisher());
      const follower = new Follower(world);
      for (const step of steps) {
        await scenario.apply(step);
        if (step.kind === 'publish') await follower.follow();
      }
      await publishAll(scenario.publisher);
      const followed = await follower.follow();
      // A new whole bundle of the same rows.
      await world.change((tx) => tx.hierarchy.advance(SITE, { wholeNeeded: 1 }));
      await publishAll(newPublisher());
      const scratch = await follower.whole();
      const { seconds } = world.clock;
      const described = (snapshot: typeof scratch) =>
        describeSnapshot(snapshot, [...scenario.clients], scenario.keys, seconds);
      expect(described(followed)).toEqual(described(scratch));
      const statuses = new Map(described(scratch).keys.map(({ keyId, status }) => [keyId, status]));
      for (const keyId of scenario.keys) {
        const row = await world.read((tx) => tx.keys.find(keyId));
        const isListed = (row?.expiresAtSeconds ?? 0) > seconds;
        expect(statuses.get(keyId)).toBe(isListed ? row?.status : undefined);
      }
    }),
    { numRuns: 25 },
  );
});
