/** Tests which revision a target has when several verifiers share its token: the oldest of those that may use a bundle. */
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { parseInstance } from '../../../src/bundle/format/instance-report.ts';
import { Distribution } from '../../../src/control/publishing/distribution.ts';
import { sitePropagation } from '../../../src/control/publishing/propagation.ts';
import { SitePublisher } from '../../../src/control/publishing/site-publisher.ts';
import { Instance } from '../../../src/verifier/loading/refresh/instance.ts';
import { waitUntil } from '../../support/wait.ts';
import { addTarget, type TestTarget } from './control-server.ts';
import { ControlWorld, ORDERS_READ, SITE } from './publishing-fixture.ts';

const never = new AbortController().signal;
const SETTINGS = {
  ...{ version: '0.4.0', authSite: SITE, realtimeStalenessSeconds: 10, hasBreakGlass: false },
  readStoreId: undefined,
};
/** Of a target; beyond it, the longest silent one is not listed any more. */
const MAX_LISTED = 3;
/** Longer than any instance is quiet. */
const SILENT_MS = 70_001;

let world: ControlWorld;
let publisher: SitePublisher;
let target: TestTarget;
beforeEach(async () => {
  world = await ControlWorld.open();
  const { store, signingKeys, clock } = world;
  publisher = new SitePublisher(SITE, { store, signingKeys, nowMs: clock.nowMs });
  target = await addTarget(world);
  await world.putClient('billing');
  await world.putRoute(ORDERS_READ);
  await publish();
});
afterEach(() => world.close());

async function publish(): Promise<void> {
  for (;;) {
    const outcome = await publisher.publishChanges();
    if (outcome === 'done') return;
    if (outcome === 'whole_needed') await publisher.publishWhole();
  }
}

type Verifier = Pick<Instance, 'text' | 'sign'>;
const OLD = undefined;

/** The verifier polls and acknowledges what is published; `OLD` signs nothing. */
async function acknowledge(
  verifier: Verifier | undefined,
  end: 'goes on' | 'ends' = 'goes on',
): Promise<void> {
  const { revision, head } = await world.site();
  const acknowledgement = { revision, head: head ?? '', outcome: 'accepted' as const };
  await send(acknowledgement, verifier, verifier?.sign(acknowledgement, target.token, end === 'ends'));
}

async function send(
  acknowledgement: { readonly revision: number; readonly head: string; readonly outcome: 'accepted' },
  verifier: Verifier | undefined,
  signature: string | undefined,
): Promise<void> {
  const { clock, store } = world;
  const distribution = new Distribution({ store, nowMs: clock.nowMs, maxInstances: MAX_LISTED });
  const headers = { instance: verifier?.text(), signature };
  const reporting = await distribution.authenticate(`Bearer ${target.token}`, headers);
  const { revision, head } = acknowledgement;
  await distribution.poll(reporting, { revision, head }, undefined, never);
  await distribution.acknowledge(reporting, acknowledgement);
  await distribution.close();
}

async function publishNext(): Promise<number> {
  await world.putClient(`client${(await world.site()).revision}`);
  await publish();
  return (await world.site()).revision;
}

async function held(): Promise<number> {
  return (await world.read((tx) => sitePropagation(tx, SITE, world.clock.ms))).held_everywhere;
}

it('is the one that every instance acknowledged, and an old verifier clears none of them', async () => {
  const [one, other] = [new Instance(SETTINGS), new Instance(SETTINGS)];
  for (const verifier of [one, other]) await acknowledge(verifier);
  const first = await held();
  const second = await publishNext();
  await acknowledge(one);
  await acknowledge(OLD);
  expect(await held()).toBe(first);
  await acknowledge(other);
  expect(await held()).toBe(second);
});

it('waits for an instance that is gone until its last possible freshness ended', async () => {
  const [one, gone] = [new Instance(SETTINGS), new Instance(SETTINGS)];
  for (const verifier of [one, gone]) await acknowledge(verifier);
  const first = await held();
  await publishNext();
  await acknowledge(one);
  expect(await held()).toBe(first);
  const [view] = (await world.read((tx) => sitePropagation(tx, SITE, world.clock.ms))).targets;
  const ends = view?.instances.map((instance) => Date.parse(instance.may_allow_until ?? ''));
  world.clock.ms = Math.max(...(ends ?? [])) + 1000;
  const third = await publishNext();
  await acknowledge(one);
  expect(await held()).toBe(third);
});

it('waits as long as a bundle lasts that an instance which is gone got at the end of its last poll', async () => {
  const [one, gone] = [new Instance(SETTINGS), new Instance(SETTINGS)];
  for (const verifier of [one, gone]) await acknowledge(verifier);
  const first = await world.site();
  const { clock, store } = world;
  const distribution = new Distribution({ store, nowMs: clock.nowMs });
  const reporting = await distribution.authenticate(`Bearer ${target.token}`, { instance: gone.text() });
  const query = { revision: first.revision, head: first.head ?? '', wait_seconds: 30 };
  const { etag } = await distribution.poll(reporting, query, undefined, never);
  clock.ms += 1000;
  const waiting = distribution.poll(reporting, query, etag, never);
  const rowOfGone = async () => {
    const rows = await world.read((tx) => tx.targetInstances.ofSite(SITE, 0));
    return rows.find(({ instanceId }) => gone.text().startsWith(instanceId));
  };
  await waitUntil(async () => (await rowOfGone())?.lastSeenAtMs === clock.ms);
  await world.putRoute({ ...ORDERS_READ, max_staleness_seconds: 600 });
  await publish();
  expect((await waiting).kind).toBe('answer');
  clock.ms = (await rowOfGone())?.freshUntilMs ?? 0;
  await distribution.close();
  await publishNext();
  await acknowledge(one);
  expect(await held()).toBe(first.revision);
});

it('does not wait for an instance that said that it ended', async () => {
  const [one, ended] = [new Instance(SETTINGS), new Instance(SETTINGS)];
  for (const verifier of [one, ended]) await acknowledge(verifier);
  await acknowledge(ended, 'ends');
  const second = await publishNext();
  await acknowledge(one);
  expect(await held()).toBe(second);
});

it('is not raised by polls in the name of an instance, which are not signed', async () => {
  const [one, listed, silent] = [new Instance(SETTINGS), new Instance(SETTINGS), new Instance(SETTINGS)];
  for (const verifier of [one, listed]) await acknowledge(verifier);
  await poll(silent.text());
  const first = await held();
  const ends = await mayAllowUntil();
  await publishNext();
  await acknowledge(one);
  const [id] = listed.text().split(' ');
  await poll(`${id} version=0.4.0 replay_store=memory`);
  await poll(listed.text().replace('realtime_staleness=10', 'realtime_staleness=1'));
  await poll(silent.text());
  expect([await held(), await mayAllowUntil()]).toEqual([first, ends]);
  await acknowledge(listed);
  expect(await held()).toBe(first);
  await acknowledge(silent);
  expect(await held()).toBe((await world.site()).revision);
});

/** A poll of the newest revision, without an acknowledgement. */
async function poll(instance: string): Promise<void> {
  const { clock, store } = world;
  const { revision, head } = await world.site();
  const distribution = new Distribution({ store, nowMs: clock.nowMs, maxInstances: MAX_LISTED });
  const reporting = await distribution.authenticate(`Bearer ${target.token}`, { instance });
  await distribution.poll(reporting, { revision, head: head ?? '' }, undefined, never);
  await distribution.close();
}

async function mayAllowUntil(): Promise<readonly (string | undefined)[]> {
  const { targets } = await world.read((tx) => sitePropagation(tx, SITE, world.clock.ms));
  return targets.flatMap(({ instances }) => instances.map((instance) => instance.may_allow_until)).toSorted();
}

it('is not raised by a signature of another instance, token, position or time', async () => {
  const [one, other] = [new Instance(SETTINGS), new Instance(SETTINGS)];
  for (const verifier of [one, other]) await acknowledge(verifier);
  const first = await held();
  const { head } = await world.site();
  const old = { revision: first, head: head ?? '', outcome: 'accepted' as const };
  const copy = one.sign(old, target.token);
  await publishNext();
  const now = await world.site();
  const current = { revision: now.revision, head: now.head ?? '', outcome: 'accepted' as const };
  await acknowledge(other);
  await send(current, one, other.sign(current, target.token));
  await send(current, one, one.sign(current, `pgt_${'A'.repeat(43)}`));
  await send(current, one, copy);
  expect(await held()).toBe(first);
  await acknowledge(one);
  expect(await held()).toBe(now.revision);
  // A copy of an earlier acknowledgement changes nothing.
  await send(old, one, copy);
  expect(await held()).toBe(now.revision);
  expect(parseInstance(one.text())?.signing).toBeDefined();
});

describe('with more instances than are listed', () => {
  const instances = (count: number) => Array.from({ length: count }, () => new Instance(SETTINGS));
  /** The target as operators see it. */
  async function shown() {
    const { targets } = await world.read((tx) => sitePropagation(tx, SITE, world.clock.ms));
    const view = targets.find(({ target_id }) => target_id === target.id);
    const untilMs = Math.max(...(view?.instances ?? []).map((one) => Date.parse(one.may_allow_until ?? '')));
    return {
      ...{ listed: view?.instances.length, listedUntilMs: untilMs },
      unlistedUntilMs: Date.parse(view?.unlisted_may_allow_until ?? ''),
    };
  }
  async function acknowledgeAll(verifiers: readonly Verifier[]): Promise<void> {
    for (const verifier of verifiers) await acknowledge(verifier);
  }

  /** All at a Control that was just started. @param polls positions that verifiers send; undefined: without a bundle */
  async function pollInTurn(
    polls: readonly (readonly [
      Verifier,
      { readonly revision: number; readonly head: string | null } | undefined,
    ])[],
  ): Promise<void> {
    const { clock, store } = world;
    const distribution = new Distribution({ store, nowMs: clock.nowMs, maxInstances: MAX_LISTED });
    for (const [verifier, position] of polls) {
      const headers = { instance: verifier.text() };
      const reporting = await distribution.authenticate(`Bearer ${target.token}`, headers);
      const query = position && { revision: position.revision, head: position.head ?? '' };
      await distribution.poll(reporting, query ?? {}, undefined, never);
    }
    await distribution.close();
  }

  it('does not wait for those that are not listed and have no bundle', async () => {
    const listed = instances(MAX_LISTED);
    await acknowledgeAll(listed);
    const current = await world.site();
    const without = instances(2).map((verifier) => [verifier, undefined] as const);
    await pollInTurn(without.slice(1));
    await pollInTurn([...listed.map((verifier) => [verifier, current] as const), ...without]);
    expect(await held()).toBe(current.revision);
  });

  it('waits for one that gave way until its last possible freshness ended', async () => {
    await acknowledge(new Instance(SETTINGS));
    const first = await held();
    const { listedUntilMs: endMs } = await shown();
    world.clock.ms += SILENT_MS;
    const others = instances(MAX_LISTED);
    const second = await publishNext();
    await acknowledgeAll(others);
    expect((await shown()).listed).toBe(MAX_LISTED);
    world.clock.ms = endMs - 1;
    await acknowledgeAll(others);
    expect(await held()).toBe(first);
    world.clock.ms = endMs;
    await acknowledgeAll(others);
    expect(await held()).toBe(second);
  });

  it('waits for one that comes too late to be listed, and goes on although it stays', async () => {
    const listed = instances(MAX_LISTED);
    const all = [...listed, new Instance(SETTINGS)];
    await acknowledgeAll(all);
    const first = await held();
    world.clock.ms += 30_000;
    const second = await publishNext();
    await acknowledgeAll(listed);
    expect(await held()).toBe(first);
    const { unlistedUntilMs: endMs } = await shown();
    await acknowledgeAll(all);
    world.clock.ms = endMs - 1;
    await acknowledgeAll(all);
    expect(await held()).toBe(first);
    world.clock.ms = endMs;
    await acknowledgeAll(all);
    expect(await held()).toBe(second);
  });

  it('waits for one that is not listed, although a listed one follows it at a Control that was started again', async () => {
    const listed = instances(MAX_LISTED);
    await acknowledgeAll(listed);
    const first = await world.site();
    const second = await publishNext();
    await acknowledgeAll(listed);
    expect(await held()).toBe(second);
    const current = await world.site();
    await pollInTurn([
      ...instances(MAX_LISTED).map((other) => [other, current] as const),
      [new Instance(SETTINGS), first],
      ...listed.map((verifier) => [verifier, current] as const),
    ]);
    expect(await held()).toBe(first.revision);
  });

  it('is delayed by a thief of its token until the longest freshness ended, and no other target is', async () => {
    const [own, other] = [new Instance(SETTINGS), new Instance(SETTINGS)];
    const robbed = target;
    await acknowledge(own);
    const first = await world.site();
    const second = await publishNext();
    await pollInTurn(instances(1000).map((thief) => [thief, first] as const));
    const apart = await addTarget(world);
    target = apart;
    await acknowledge(other);
    target = robbed;
    await acknowledge(own);
    const acked = async (id: string) => (await world.read((tx) => tx.targets.find(id)))?.ackedRevision;
    expect([await acked(robbed.id), await acked(apart.id)]).toEqual([first.revision, second]);
    const { listed, listedUntilMs, unlistedUntilMs } = await shown();
    expect(listed).toBe(MAX_LISTED);
    world.clock.ms = Math.max(listedUntilMs, unlistedUntilMs);
    const third = await publishNext();
    await acknowledge(own);
    expect(await acked(robbed.id)).toBe(third);
  });
});
