/** Tests the verifier's refresh client against the publisher over HTTP: from a change to a snapshot that denies. */
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { BlockedCallers } from '../../../src/control/configuration/blocked-callers.ts';
import { waitUntil } from '../../support/wait.ts';
import { addTarget, type ControlServer, startControl, type TestTarget } from './control-server.ts';
import { ControlWorld, ISSUER_URL, ORDERS_READ, SITE } from './publishing-fixture.ts';
import { type RealTarget, startRealTarget } from './real-target.ts';

let world: ControlWorld;
let control: ControlServer;
const closing: (() => Promise<void>)[] = [];
beforeEach(async () => {
  world = await ControlWorld.open();
  world.clock.ms = Date.now();
  control = await startControl(world);
});
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
  await control.close();
  await world.close();
});

const startVerifier = async (target: TestTarget, directory?: string): Promise<RealTarget> => {
  const verifier = await startRealTarget({ world, control, target, directory });
  closing.push(verifier.remove);
  return verifier;
};

const statusIn = ({ loader }: RealTarget, keyId: string): string | undefined => {
  const key = loader.snapshot?.keys.get(keyId);
  return key?.kind === 'derived_key' ? key.status : undefined;
};
const ackedRevision = async ({ id }: TestTarget) =>
  (await world.read((tx) => tx.targets.find(id)))?.ackedRevision ?? 0;

it('a key, its revocation, a route: each comes to the verifier and is acknowledged', async () => {
  await world.putClient('billing', { orders: 'read' });
  const target = await addTarget(world);
  const verifier = await startVerifier(target);
  await waitUntil(() => verifier.loader.snapshot !== undefined);
  const key = await world.addKey('billing');
  await waitUntil(() => statusIn(verifier, key) === 'active');
  await world.revokeKey(key);
  await waitUntil(() => statusIn(verifier, key) === 'revoked');
  await world.putRoute(ORDERS_READ);
  await waitUntil(() => verifier.loader.snapshot?.routes.size === 1);
  await waitUntil(async () => (await ackedRevision(target)) === (await world.site()).revision);
  expect(statusIn(verifier, key)).toBe('revoked');
  expect(verifier.events.filter((event) => event.includes('refused'))).toEqual([]);
  expect(control.faults).toEqual([]);
});

it('a blocked caller comes to the verifier, which reports that it knows the member, and goes again', async () => {
  const { clock, store } = world;
  const callers = new BlockedCallers({ store, nowMs: clock.nowMs });
  const operation = { actor: 'bootstrap', requestId: 'req_1' };
  const caller = { issuer: ISSUER_URL, subject: 'client:billing' };
  const verifier = await startVerifier(await addTarget(world));
  await callers.block(SITE, caller, operation);
  const subjects = () => verifier.loader.snapshot?.blocked?.get(ISSUER_URL)?.subjects ?? new Set();
  await waitUntil(() => subjects().has('client:billing'));
  await callers.unblock(SITE, caller, operation);
  await waitUntil(() => verifier.loader.snapshot?.blocked === undefined);
  expect(verifier.events.filter((event) => event.includes('refused'))).toEqual([]);
});

it('freshness goes on while nothing changes, and stops at a change that cannot be published', async () => {
  const target = await addTarget(world);
  const verifier = await startVerifier(target);
  await waitUntil(() => verifier.loader.snapshot !== undefined);
  const freshAsOf = () => verifier.loader.snapshot?.freshAsOfSeconds ?? 0;
  const before = freshAsOf();
  world.clock.ms += 7000;
  await waitUntil(() => freshAsOf() === before + 7);
  // A route that no bundle can contain; a service would reject it.
  await world.putRoute({ ...ORDERS_READ, method: 'not a method' });
  const stuckSinceSeconds = world.clock.seconds;
  world.clock.ms += 60_000;
  await waitUntil(() => control.faults.length > 0);
  const statement = await world.read((tx) => tx.distribution.freshness(SITE));
  await waitUntil(async () => {
    const row = await world.read((tx) => tx.distribution.freshness(SITE));
    return row?.document !== statement?.document || (row?.asOfSeconds ?? 0) === stuckSinceSeconds;
  });
  await waitUntil(() => freshAsOf() === stuckSinceSeconds);
  expect(world.clock.seconds - freshAsOf()).toBe(60);
  // A revocation is still published.
  expect(verifier.events.filter((event) => event.includes('refused'))).toEqual([]);
});

it('a verifier that knew a later revision takes what a restored Control publishes above it', async () => {
  await world.putClient('billing');
  const target = await addTarget(world);
  const verifier = await startVerifier(target);
  const persisted = await world.addKey('billing');
  await waitUntil(() => statusIn(verifier, persisted) === 'active');
  await control.close();
  const backup = await world.backUp();
  control = await startControl(world, control.port);
  const lost = [await world.addKey('billing'), await world.addKey('billing')];
  await waitUntil(() => lost.every((key) => statusIn(verifier, key) === 'active'));
  await waitUntil(async () => (await ackedRevision(target)) === (await world.site()).revision);
  const { revision: acknowledged } = await world.site();
  await verifier.stop();
  await control.close();
  await world.restore(backup);
  expect((await world.site()).revision).toBeLessThan(acknowledged);
  control = await startControl(world, control.port);
  const again = await startVerifier(target, verifier.directory);
  expect(again.loader.position?.revision).toBe(acknowledged);
  await waitUntil(() => (again.loader.position?.revision ?? 0) > acknowledged);
  for (const key of lost) expect(statusIn(again, key)).toBeUndefined();
  expect(statusIn(again, persisted)).toBe('active');
  await waitUntil(async () => (await ackedRevision(target)) > acknowledged);
  expect(again.events.filter((event) => event.includes('refused'))).toEqual([]);
});
