/** Tests what an attacker with the token of a target can do to Control and to other targets. */
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { PollQuery } from '../../../src/bundle/format/distribution-contract.ts';
import { Distribution } from '../../../src/control/publishing/distribution.ts';
import { SitePublisher } from '../../../src/control/publishing/site-publisher.ts';
import { TargetAllowance } from '../../../src/control/publishing/target-rate-limit.ts';
import { addTargets, detach, requestOf, type TestTarget } from './control-server.ts';
import { ControlWorld, SITE } from './publishing-fixture.ts';

let world: ControlWorld;
let distribution: Distribution;
let publisher: SitePublisher;
let hostile: TestTarget;
let honest: TestTarget;
beforeEach(async () => {
  world = await ControlWorld.open();
  const { store, signingKeys, clock } = world;
  distribution = new Distribution({ store, nowMs: clock.nowMs });
  publisher = new SitePublisher(SITE, { store, signingKeys, nowMs: clock.nowMs });
  [hostile, honest] = (await addTargets(world, 2)) as [TestTarget, TestTarget];
  await world.putClient('billing');
  await publish();
});
afterEach(async () => {
  await distribution.close();
  await world.close();
});

const never = new AbortController().signal;
const poll = ({ id }: TestTarget, query: PollQuery = {}) =>
  distribution.poll(requestOf(id), query, undefined, never);
async function publish(): Promise<void> {
  for (;;) {
    const outcome = await publisher.publishChanges();
    if (outcome === 'done') return;
    if (outcome === 'whole_needed') await publisher.publishWhole();
  }
}
const headOf = (number: number) => String(number).padStart(43, 'A');
const audits = (kind: string) =>
  world.read((tx) => tx.audit.list({ siteId: SITE, kind, reach: { kind: 'everything' }, limit: 200 }));
const row = (id: string) => world.read((tx) => tx.targets.find(id));

/** Reports another chain at the newest revision, which only a higher whole bundle can repair. */
async function claimAnotherChain(target: TestTarget, number: number): Promise<void> {
  const { revision } = await world.site();
  await poll(target, { revision, head: headOf(number) });
  await publish();
}

describe('whole bundles that a target makes necessary', () => {
  it('are five at once and one a minute, however often it says so', async () => {
    const { revision: before } = await world.site();
    for (let number = 0; number < 40; number++) await claimAnotherChain(hostile, number);
    expect((await world.site()).revision).toBe(before + 5);
    expect(await audits('proofgate.control.site.raise_floor')).toHaveLength(5);
    world.clock.ms += 60_000;
    for (let number = 40; number < 50; number++) await claimAnotherChain(hostile, number);
    expect((await world.site()).revision).toBe(before + 6);
  });

  it('of another target are its own', async () => {
    for (let number = 0; number < 10; number++) await claimAnotherChain(hostile, number);
    const { revision } = await world.site();
    await claimAnotherChain(honest, 99);
    expect(await poll(honest, { revision, head: headOf(99) })).toMatchObject({
      kind: 'answer',
      answer: { revision: revision + 1, whole: { required: true } },
    });
  });

  it('by acknowledgements are counted with those by polls', async () => {
    const { revision: before } = await world.site();
    for (let number = 0; number < 20; number++) {
      const { revision } = await world.site();
      await distribution.acknowledge(requestOf(hostile.id), {
        revision,
        head: headOf(number),
        outcome: 'accepted',
      });
      await publish();
    }
    expect((await world.site()).revision).toBe(before + 5);
  });
});

describe('revisions that a target claims', () => {
  const claim = async (revision: number) => {
    try {
      await poll(hostile, { revision, head: headOf(1) });
    } catch (error) {
      return (error as { readonly code?: string }).code;
    } finally {
      await publish();
    }
    return undefined;
  };
  async function restartControl(): Promise<void> {
    await distribution.close();
    const { store, clock } = world;
    distribution = new Distribution({ store, nowMs: clock.nowMs });
  }

  it('raise the floor by a million in all, in whatever steps, on whatever instance', async () => {
    const { revision: before } = await world.site();
    for (let step = 1; step <= 12; step++) {
      await claim(before + step * 100_000);
      await restartControl();
      world.clock.ms += 60_000;
    }
    const { revision } = await world.site();
    // Each bundle published because of these reports also takes a revision.
    expect(revision - before).toBeLessThanOrEqual(1_000_012);
    expect(revision - before).toBeGreaterThan(900_000);
    expect(await claim(revision + 900_000)).toBe('revision_out_of_range');
    expect(await claim(Number.MAX_SAFE_INTEGER)).toBe('revision_out_of_range');
    expect((await world.site()).revision).toBe(revision);
    expect(await row(hostile.id)).toMatchObject({ aheadRevision: Number.MAX_SAFE_INTEGER });
    // Reports of another target are independent.
    expect(await poll(honest, { revision: revision + 5, head: headOf(2) })).toMatchObject({
      kind: 'not_modified',
    });
    await publish();
    expect((await world.site()).revision).toBe(revision + 6);
  });

  it('block no honest target after an operator has raised the floor', async () => {
    const { revision } = await world.site();
    expect(await claim(revision + 5_000_000)).toBe('revision_out_of_range');
    await world.change((tx) =>
      tx.hierarchy.advance(SITE, { floorRevision: revision + 2_000_000, wholeNeeded: 1 }),
    );
    await publish();
    const place = { revision: revision + 2_000_000, head: headOf(3) };
    expect(await poll(honest, place)).toMatchObject({
      kind: 'answer',
      answer: { revision: revision + 2_000_001, whole: { required: true } },
    });
  });
});

describe('what is kept in memory for a target', () => {
  const answerOf = async (query: PollQuery) => {
    const result = await poll(hostile, query);
    if (result.kind !== 'answer') throw new Error('no answer');
    return result.answer;
  };

  it('is one answer, whatever places without a way on it names', async () => {
    await world.putClient('reporting');
    await publish();
    await claimAnotherChain(honest, 1);
    const whole = await answerOf({});
    for (let number = 0; number < 30; number++) {
      // The same object, so it is serialized once.
      expect(await answerOf({ revision: 1, head: headOf(number) })).toBe(whole);
      expect(await answerOf({ revision: number + 1 })).toBe(whole);
    }
  });
});

describe('a poll that waits while its target is detached', () => {
  it('brings nothing of what is published afterwards; those of others are asked again', async () => {
    const [detached, other] = await Promise.all(
      [hostile, honest].map(({ token }) => distribution.authenticate(`Bearer ${token}`)),
    );
    if (detached === undefined || other === undefined) throw new Error('missing');
    const { revision, head } = await world.site();
    const here = { revision, head: head ?? '', base_revision: revision, wait_seconds: 30 };
    const result = await poll(honest);
    const etag = result.kind === 'answer' ? result.etag : undefined;
    const waiting = [detached, other].map((each) => distribution.poll(each, here, etag, never));
    await detach(world, hostile.id);
    await world.addKey('billing');
    await publish();
    expect(await Promise.all(waiting)).toEqual([
      { kind: 'not_modified', etag },
      { kind: 'not_modified', etag },
    ]);
    await expect(distribution.poll(detached, here, etag, never)).rejects.toMatchObject({
      code: 'authentication_required',
    });
    expect(await distribution.poll(other, here, etag, never)).toMatchObject({
      kind: 'answer',
      answer: { revision: revision + 1, steps: [{ kind: 'delta' }] },
    });
  });
});

describe('refusals', () => {
  it('with a new reason each time make no more than five rows of the audit trail, and are known all the same', async () => {
    const { revision, head } = await world.site();
    for (let number = 0; number < 12; number++) {
      await distribution.acknowledge(requestOf(hostile.id), {
        revision,
        head: head ?? '',
        outcome: 'refused',
        code: `reason_${number}`,
      });
    }
    expect(await audits('proofgate.control.target.refuse_bundle')).toHaveLength(5);
    expect(await row(hostile.id)).toMatchObject({ refusedRevision: revision, refusedCode: 'reason_11' });
  });
});

describe('an allowance', () => {
  it('fills up again, not beyond its beginning, and not by a clock that was set back', () => {
    const allowance = new TargetAllowance();
    const taken = (nowMs: number) =>
      Array.from({ length: 20 }, () => allowance.take('a', nowMs)).filter(Boolean).length;
    expect(taken(0)).toBe(5);
    expect(taken(59_999)).toBe(0);
    expect(taken(60_000)).toBe(1);
    expect(taken(10_000)).toBe(0);
    expect(taken(3_600_000)).toBe(5);
  });
});
