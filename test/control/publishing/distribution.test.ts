/** Tests the answers to a poll of a target, and the effect of its reports. */
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { PollQuery } from '../../../src/bundle/format/distribution-contract.ts';
import { Distribution } from '../../../src/control/publishing/distribution.ts';
import { sitePropagation } from '../../../src/control/publishing/propagation.ts';
import { SitePublisher } from '../../../src/control/publishing/site-publisher.ts';
import { settleSources } from '../../../src/control/publishing/source-settlement.ts';
import { addTarget, addTargets, detach, requestOf, type TestTarget } from './control-server.ts';
import { ControlWorld, ORDERS_READ, SITE } from './publishing-fixture.ts';

let world: ControlWorld;
let distribution: Distribution;
let publisher: SitePublisher;
let target: TestTarget;
beforeEach(async () => {
  world = await ControlWorld.open();
  const { store, signingKeys, clock } = world;
  distribution = new Distribution({ store, nowMs: clock.nowMs });
  publisher = new SitePublisher(SITE, { store, signingKeys, nowMs: clock.nowMs });
  target = await addTarget(world);
  await world.putClient('billing');
});
afterEach(async () => {
  await distribution.close();
  await world.close();
});

const never = new AbortController().signal;
const poll = (query: PollQuery = {}, etag?: string) =>
  distribution.poll(requestOf(target.id), query, etag, never);
async function publish(): Promise<void> {
  for (;;) {
    const outcome = await publisher.publishChanges();
    if (outcome === 'done') return;
    if (outcome === 'whole_needed') await publisher.publishWhole();
  }
}
async function position() {
  const { revision, head, baseRevision } = await world.site();
  return { revision, head: head ?? '', base_revision: baseRevision };
}
const audits = (kind: string) =>
  world.read((tx) => tx.audit.list({ siteId: SITE, kind, reach: { kind: 'everything' }, limit: 100 }));
const row = (id = target.id) => world.read((tx) => tx.targets.find(id));
const OTHER_HEAD = 'A'.repeat(43);

describe('who asks', () => {
  const bearer = (token: string) => distribution.authenticate(`Bearer ${token}`);

  it('is known by a token of its kind', async () => {
    expect(await bearer(target.token)).toMatchObject({ targetId: target.id, siteId: SITE });
    for (const header of [
      undefined,
      '',
      'Bearer',
      `Basic ${target.token}`,
      `Bearer ${'pgt_'.padEnd(47, 'x')}`,
    ]) {
      await expect(distribution.authenticate(header)).rejects.toMatchObject({
        code: 'authentication_required',
      });
    }
    await expect(bearer(target.token.replace('pgt_', 'pga_'))).rejects.toMatchObject({
      code: 'authentication_required',
    });
  });

  it('is unknown from the moment that it is detached', async () => {
    expect(await bearer(target.token)).toMatchObject({ targetId: target.id, siteId: SITE });
    await detach(world, target.id);
    await expect(bearer(target.token)).rejects.toMatchObject({ code: 'authentication_required' });
  });
});

describe('a poll', () => {
  it('without a position brings the whole bundle and the steps on it', async () => {
    await publish();
    await world.addKey('billing');
    await publish();
    const result = await poll();
    if (result.kind !== 'answer') throw new Error('no answer');
    const { revision, head } = await position();
    expect(result.answer).toMatchObject({ auth_site: SITE, revision, head, steps: [] });
    expect(result.answer.whole).toMatchObject({
      revision: 1,
      required: true,
      steps: [{ kind: 'delta', revision: 2 }],
    });
    const [file] = result.answer.whole?.files ?? [];
    expect(file?.path).toBe('/v1/targets/self/bundles/1/bundle.jws');
    expect(await distribution.file(requestOf(target.id), 1, 'bundle.jws')).toHaveLength(file?.bytes ?? 0);
    await expect(distribution.file(requestOf(target.id), 1, 'keys-0001.jsonl')).rejects.toMatchObject({
      code: 'not_found',
    });
    expect(result.answer.freshness).toBeDefined();
  });

  it('with a position brings the steps from there, and no bundle', async () => {
    await publish();
    const first = await position();
    for (let count = 0; count < 3; count++) {
      await world.addKey('billing');
      await publish();
    }
    const result = await poll(first);
    expect(result).toMatchObject({ kind: 'answer', answer: { revision: 4, steps: [{}, {}, {}] } });
    if (result.kind === 'answer') expect(result.answer.whole).toBeUndefined();
  });

  it('across a changed route requires the whole bundle', async () => {
    await publish();
    const first = await position();
    await world.putRoute(ORDERS_READ);
    await publish();
    expect(await poll(first)).toMatchObject({
      kind: 'answer',
      answer: { steps: [], whole: { revision: 2, required: true } },
    });
  });

  it('follows a link, and is offered the base when its own is far behind', async () => {
    await publish();
    const first = await position();
    await world.change((tx) => tx.hierarchy.advance(SITE, { wholeNeeded: 1, floorRevision: 1500 }));
    await publish();
    expect(await poll(first)).toMatchObject({
      kind: 'answer',
      answer: {
        steps: [{ kind: 'link', revision: 1501 }],
        whole: { revision: 1501, required: false, steps: [] },
      },
    });
  });

  it('waits until something is published, and says nothing when nothing was', async () => {
    await publish();
    const here = await position();
    const first = await poll(here);
    if (first.kind !== 'answer') throw new Error('no answer');
    expect(await poll(here, first.etag)).toEqual({ kind: 'not_modified', etag: first.etag });
    const waiting = poll({ ...here, wait_seconds: 30 }, first.etag);
    await world.addKey('billing');
    await publish();
    expect(await waiting).toMatchObject({
      kind: 'answer',
      answer: { revision: 2, steps: [{ kind: 'delta' }] },
    });
  });

  it('ends with its signal', async () => {
    await publish();
    const first = await poll();
    const stop = new AbortController();
    const waiting = distribution.poll(requestOf(target.id), { wait_seconds: 30 }, first.etag, stop.signal);
    stop.abort();
    expect(await waiting).toEqual({ kind: 'not_modified', etag: first.etag });
  });

  it('before the first publication waits for it', async () => {
    const waiting = poll({ wait_seconds: 30 });
    await publish();
    expect(await waiting).toMatchObject({ kind: 'answer', answer: { revision: 1 } });
  });

  it('far behind the memory still brings steps, from the store', async () => {
    await publish();
    const first = await position();
    for (let count = 0; count < 3; count++) {
      await world.addKey('billing');
      await publish();
    }
    // Large documents leave room for only one in an answer.
    await world.store.writeUnaudited(undefined, async (tx) => {
      for (const step of await tx.distribution.stepsAfter(SITE, 1, 10)) {
        await tx.distribution.pruneSteps(SITE, 0);
        await tx.distribution.addStep({
          ...step,
          siteId: SITE,
          revision: step.revision + 100,
          previousHead: step.previousHead,
          bytes: 5 * 1024 * 1024,
        });
      }
      await tx.hierarchy.advance(SITE, { revision: 104 });
    });
    expect(await poll(first)).toMatchObject({ kind: 'answer', answer: { steps: [{}, {}, {}, {}, {}, {}] } });
  });
});

describe('a target that is elsewhere', () => {
  it('beyond the end raises the floor, waits, and gets a whole bundle above', async () => {
    await publish();
    const waiting = poll({ revision: 50, head: OTHER_HEAD, base_revision: 50, wait_seconds: 30 });
    while ((await world.site()).floorRevision !== 50) await new Promise(setImmediate);
    await publish();
    expect(await waiting).toMatchObject({
      kind: 'answer',
      answer: { revision: 51, steps: [], whole: { revision: 51, required: true } },
    });
    expect(await audits('proofgate.control.site.raise_floor')).toHaveLength(1);
  });

  it('that says it again raises nothing again', async () => {
    await publish();
    for (let count = 0; count < 3; count++) {
      expect(await poll({ revision: 50, head: OTHER_HEAD })).toEqual({
        kind: 'not_modified',
        etag: undefined,
      });
    }
    expect(await audits('proofgate.control.site.raise_floor')).toHaveLength(1);
  });

  it('on another chain at our revision gets a whole bundle above it', async () => {
    await publish();
    const here = await position();
    expect(await poll({ ...here, head: OTHER_HEAD })).toMatchObject({ kind: 'not_modified' });
    await publish();
    expect(await poll({ ...here, head: OTHER_HEAD })).toMatchObject({
      kind: 'answer',
      answer: { revision: 2, whole: { revision: 2, required: true } },
    });
    // Targets on the earlier revision of our chain continue with a link.
    expect(await poll(here)).toMatchObject({ kind: 'answer', answer: { steps: [{ kind: 'link' }] } });
  });

  it('on another chain below a whole bundle takes that one', async () => {
    await publish();
    await world.putRoute(ORDERS_READ);
    await publish();
    expect(await poll({ revision: 1, head: OTHER_HEAD })).toMatchObject({
      kind: 'answer',
      answer: { whole: { revision: 2, required: true } },
    });
    expect(await audits('proofgate.control.site.raise_floor')).toEqual([]);
  });

  it('too far beyond is refused', async () => {
    await publish();
    await expect(poll({ revision: 1_000_002, head: OTHER_HEAD })).rejects.toMatchObject({
      code: 'revision_out_of_range',
    });
    expect((await world.site()).floorRevision).toBe(0);
    await poll({ revision: 1_000_001, head: OTHER_HEAD });
    await publish();
    expect((await world.site()).revision).toBe(1_000_002);
  });

  it('is shown as ahead until it takes what was published', async () => {
    await publish();
    const { revision, head } = await position();
    await distribution.acknowledge(requestOf(target.id), { revision, head, outcome: 'accepted' });
    const shown = async () => {
      const { targets } = await world.read((tx) => sitePropagation(tx, SITE, world.clock.ms));
      const { state, ahead_revision, behind_revisions } = targets[0] ?? {};
      return { state, ahead_revision, behind_revisions };
    };
    expect(await shown()).toEqual({ state: 'current', behind_revisions: 0 });
    const lost = { revision: 3_000_000, head: OTHER_HEAD };
    await expect(poll(lost)).rejects.toMatchObject({ code: 'revision_out_of_range' });
    expect(await shown()).toEqual({ state: 'ahead', ahead_revision: 3_000_000, behind_revisions: 0 });
    await world.change((tx) => tx.hierarchy.advance(SITE, { floorRevision: 3_000_000, wholeNeeded: 1 }));
    await publish();
    expect(await poll(lost)).toMatchObject({ answer: { revision: 3_000_001, whole: { required: true } } });
    const taken = await position();
    await distribution.acknowledge(requestOf(target.id), { ...taken, outcome: 'accepted' });
    expect(await shown()).toEqual({ state: 'current', behind_revisions: 0 });
    // Another party uses its token; the target's own next report replaces the claim.
    await poll({ revision: 3_000_001, head: OTHER_HEAD });
    expect(await shown()).toMatchObject({ state: 'ahead', ahead_revision: 3_000_001 });
    await poll(taken);
    await distribution.close();
    expect(await shown()).toEqual({ state: 'current', behind_revisions: 0 });
  });

  it('may also come with an acknowledgement, which then acknowledges nothing of ours', async () => {
    await publish();
    await distribution.acknowledge(requestOf(target.id), {
      revision: 9,
      head: OTHER_HEAD,
      outcome: 'accepted',
    });
    expect((await world.site()).floorRevision).toBe(9);
    expect(await row()).toMatchObject({ ackedRevision: null });
    const { revision } = await position();
    await distribution.acknowledge(requestOf(target.id), { revision, head: OTHER_HEAD, outcome: 'accepted' });
    expect(await row()).toMatchObject({ ackedRevision: null });
  });
});

describe('a site that gets the identifier of a deleted one', () => {
  it('has nothing of what was published of it, though revisions are alike', async () => {
    await publish();
    const old = await poll();
    const stop = new AbortController();
    // Keeps the cached state of the site in use.
    const etag = old.kind === 'answer' ? old.etag : undefined;
    const authenticated = await distribution.authenticate(`Bearer ${target.token}`);
    const waiting = distribution.poll(authenticated, { wait_seconds: 30 }, etag, stop.signal);
    await detach(world, target.id);
    await world.store.writeUnaudited(undefined, (tx) => tx.sites.remove(SITE));
    await world.addSite(SITE);
    target = await addTarget(world);
    await publish();
    stop.abort();
    await waiting;
    const { revision, head } = await world.site();
    const now = await poll();
    expect(now).toMatchObject({ answer: { revision, head, whole: { revision, head } } });
    expect([revision, old.kind === 'answer' && old.answer.revision]).toEqual([1, 1]);
    const files = now.kind === 'answer' ? (now.answer.whole?.files ?? []) : [];
    for (const { name } of files) {
      const content = await distribution.file(requestOf(target.id), revision, name);
      expect(content).toHaveLength(files.find((file) => file.name === name)?.bytes ?? 0);
    }
  });
});

describe('acknowledgements', () => {
  const accept = async (id = target.id) => {
    const { revision, head } = await position();
    await distribution.acknowledge(requestOf(id), { revision, head, outcome: 'accepted' });
  };

  it('are written down before they are answered', async () => {
    await publish();
    world.clock.ms += 1234;
    await accept();
    const { revision, head } = await position();
    expect(await row()).toMatchObject({
      ackedRevision: revision,
      ackedHead: head,
      ackedAtMs: world.clock.ms,
      lastSeenAtMs: world.clock.ms,
    });
  });

  it('a refusal is kept; in the audit trail it is when it begins or its reason changes', async () => {
    await publish();
    const reject = async (code: string) => {
      const { revision, head } = await position();
      await distribution.acknowledge(requestOf(target.id), { revision, head, outcome: 'refused', code });
    };
    await reject('signatures_insufficient');
    await world.addKey('billing');
    await publish();
    await reject('signatures_insufficient');
    expect(await row()).toMatchObject({ refusedRevision: 2, refusedCode: 'signatures_insufficient' });
    expect(await audits('proofgate.control.target.refuse_bundle')).toHaveLength(1);
    await reject('refused_by_policy');
    expect(await audits('proofgate.control.target.refuse_bundle')).toHaveLength(2);
    await accept();
    await world.addKey('billing');
    await publish();
    await reject('refused_by_policy');
    expect(await audits('proofgate.control.target.refuse_bundle')).toHaveLength(3);
  });

  it('of all attached targets make a publishing source active, and supersede the one before', async () => {
    const others = await addTargets(world, 2);
    await publish();
    await accept(others[1]?.id);
    const source = await world.addSource(1, 'active');
    await world.addSource(2, 'publishing', source);
    await publish();
    const states = async () =>
      (await world.read((tx) => tx.sources.revisions(source))).map(({ state }) => state);
    await accept();
    await accept(others[0]?.id);
    expect(await states()).toEqual(['active', 'publishing']);
    // One that has never loaded a bundle is not waited for.
    await addTargets(world, 1);
    await detach(world, others[1]?.id ?? '');
    await settleSources(world.store, SITE, world.clock.ms);
    expect(await states()).toEqual(['retired', 'active']);
    expect(await audits('proofgate.control.source_revision.acknowledge')).toHaveLength(1);
    expect(await audits('proofgate.control.source_revision.supersede')).toHaveLength(1);
  });

  it('of an older revision do not', async () => {
    await publish();
    const before = await position();
    const source = await world.addSource(1, 'publishing');
    await publish();
    const { revision, head } = before;
    await distribution.acknowledge(requestOf(target.id), { revision, head, outcome: 'accepted' });
    await settleSources(world.store, SITE, world.clock.ms);
    expect(await world.read((tx) => tx.sourceRevisions.find(source, 1))).toMatchObject({
      state: 'publishing',
      awaitedRevision: 2,
    });
  });

  it('tell since when a key, and its revocation, is held everywhere', async () => {
    const other = await addTarget(world);
    const key = await world.addKey('billing');
    await publish();
    await accept();
    const noted = () => world.read((tx) => tx.keys.find(key));
    expect(await noted()).toMatchObject({ listedEverywhereAtMs: null });
    world.clock.ms += 1000;
    await accept(other.id);
    const listedAtMs = world.clock.ms;
    expect(await noted()).toMatchObject({ listedEverywhereAtMs: listedAtMs, revokedEverywhereAtMs: null });
    await world.revokeKey(key);
    await publish();
    await accept();
    world.clock.ms += 1000;
    await accept(other.id);
    expect(await noted()).toMatchObject({
      listedEverywhereAtMs: listedAtMs,
      revokedEverywhereAtMs: world.clock.ms,
    });
  });

  it('of a thousand targets are all written, in few transactions', async () => {
    const targets = await addTargets(world, 1000);
    await publish();
    let writes = 0;
    const housekeep = world.store.writeUnaudited.bind(world.store);
    world.store.writeUnaudited = (lock, work) => {
      writes++;
      return housekeep(lock, work);
    };
    await Promise.all(targets.map(({ id }) => accept(id)));
    const held = await world.read((tx) => tx.targets.attached(SITE));
    expect(held.filter(({ ackedRevision }) => ackedRevision === 1)).toHaveLength(1000);
    expect(writes).toBeLessThan(50);
  });
});
