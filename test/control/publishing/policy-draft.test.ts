/** Whole bundles while clients and routes change: each has the content of the moment of its publication, and the lock is short. */
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { PolicyDraft } from '../../../src/control/publishing/policy-draft.ts';
import { SitePublisher } from '../../../src/control/publishing/site-publisher.ts';
import type { ControlStore, Transaction } from '../../../src/control/store/port.ts';
import { ControlWorld, ORDERS_READ, SITE } from './publishing-fixture.ts';

let world: ControlWorld;
beforeEach(async () => {
  world = await ControlWorld.open();
  for (const name of ['api', 'billing', 'web']) await world.putClient(name, { orders: 'read' });
  await world.putRoute(ORDERS_READ);
});
afterEach(() => world.close());

/** @param replaced methods of the store */
function publisherWith(replaced: Partial<ControlStore>): SitePublisher {
  const { clock, signingKeys, store } = world;
  const wrapped = new Proxy(store, {
    get(target, name: keyof ControlStore) {
      if (replaced[name] !== undefined) return replaced[name];
      const method = target[name];
      return typeof method === 'function' ? method.bind(target) : method;
    },
  });
  return new SitePublisher(SITE, { store: wrapped, signingKeys, nowMs: clock.nowMs });
}

async function published() {
  const { baseRevision } = await world.site();
  const document = await world.read(async (tx) => {
    const [file] = await tx.distribution.files(SITE, baseRevision);
    return tx.distribution.blob(SITE, file?.sha256 ?? '');
  });
  const { payload } = JSON.parse(Buffer.from(document ?? '').toString('utf8'));
  const { clients, route_sources, routes } = JSON.parse(Buffer.from(payload, 'base64url').toString('utf8'));
  return { clients, route_sources, routes };
}

async function stored() {
  const site = await world.site();
  const policy = await world.read(async (tx) => (await PolicyDraft.read(tx, site)).policy(tx, site));
  const { clients, route_sources, routes } = policy;
  return { clients, route_sources, routes };
}

const removeClient = (clientId: string) =>
  world.change(async (tx) => {
    await tx.clients.removeGrantsOf(SITE, [clientId]);
    await tx.clients.remove(SITE, clientId);
    await tx.changes.record(SITE, { kind: 'client', clientId }, world.clock.ms);
  });

const CHANGES: readonly (readonly [name: string, change: () => Promise<unknown>])[] = [
  ['a client that changes', () => world.putClient('billing', { orders: 'write' })],
  ['a new client', () => world.putClient('audit', {})],
  ['a client that is removed', () => removeClient('billing')],
  ['a route that changes', () => world.putRoute({ ...ORDERS_READ, max_staleness_seconds: 60 })],
];

describe.each([1, 2])('after read %i', (read) => {
  describe.each([false, true])('with a delta: %s', (withDelta) => {
    it.each(CHANGES)('%s', async (_name, change) => {
      let reads = 0;
      const publisher = publisherWith({
        async readAside(work) {
          const result = await world.store.readAside(work);
          reads += 1;
          if (reads === read) {
            await change();
            if (withDelta) await publisher.publishChanges();
          }
          return result;
        },
      });
      // A chain to which deltas can be added.
      await publisherWith({}).publishWhole();
      await world.change((tx) => tx.hierarchy.advance(SITE, { wholeNeeded: 1 }));
      expect(await publisher.publishWhole()).toBe(true);
      expect(reads).toBeGreaterThanOrEqual(2);
      expect(await published()).toEqual(await stored());
    });
  });
});

it('reads neither clients nor routes under the lock', async () => {
  const called: string[] = [];
  const noting = (tx: Transaction): Transaction => {
    const clients = new Proxy(tx.clients, {
      get: (target, name) => {
        called.push(`clients.${String(name)}`);
        return Reflect.get(target, name, target);
      },
    });
    const routes = new Proxy(tx.routes, {
      get: (target, name) => {
        called.push(`routes.${String(name)}`);
        return Reflect.get(target, name, target);
      },
    });
    return Object.create(tx, { clients: { value: clients }, routes: { value: routes } });
  };
  const publisher = publisherWith({
    writeUnaudited: (lock, work) => world.store.writeUnaudited(lock, (tx) => work(noting(tx))),
  });
  expect(await publisher.publishWhole()).toBe(true);
  expect(called).toEqual([]);
  expect((await published()).clients).toHaveLength(3);
});
