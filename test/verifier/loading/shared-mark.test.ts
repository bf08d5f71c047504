/** The mark that a site's verifiers share: whom it binds, how it is kept up, and what happens when it cannot be asked for. */
import { describe, expect, it } from '@jest/globals';
import type { ChainPosition } from '../../../src/bundle/format/chain.ts';
import type { BundleContent } from '../../../src/bundle/format/schema.ts';
import {
  FileMark,
  type HighWaterMark,
  MemoryMark,
} from '../../../src/verifier/loading/state/high-water-mark.ts';
import { MirroredMark, type MirroredMarkOptions } from '../../../src/verifier/loading/state/shared-mark.ts';
import { bundleDocument, newDirectory, putBundle } from '../../support/bundle/bundle-directory.ts';
import { FakeSharedMark } from '../../support/fakes/shared-mark.ts';
import { AUTH_SITE, bundleContent, newTestKeys } from '../../support/fixtures/bundle-content.ts';
import { waitUntil } from '../../support/wait.ts';
import { closeAfterTest, newTestLoader } from './loader-fixture.ts';

const keys = newTestKeys();
const revision = (number: number, more: Partial<BundleContent> = {}): BundleContent => ({
  ...bundleContent(keys),
  revision: number,
  ...more,
});
const at = (number: number, letter = 'A'): ChainPosition => ({ revision: number, head: letter.repeat(43) });

function mirrored(shared: FakeSharedMark, more: Partial<MirroredMarkOptions> = {}) {
  const events: unknown[][] = [];
  const mark = new MirroredMark({
    own: new MemoryMark(),
    shared,
    authSite: AUTH_SITE,
    raiseIntervalMs: 5,
    listener: {
      bound: (position) => events.push(['bound', position.revision]),
      raiseFailed: ({ fault }) => events.push(['raiseFailed', fault]),
      raiseWorksAgain: () => events.push(['raiseWorksAgain']),
      disagrees: (own, other) => events.push(['disagrees', own.head, other.head]),
    },
    ...more,
  });
  closeAfterTest(() => mark.close());
  return { mark, events };
}

async function startLoader(directory: string, mark: HighWaterMark, stateDirectory?: string) {
  const state = stateDirectory === undefined ? {} : { stateDirectory, persists: true };
  const started = newTestLoader({
    signer: keys.bundle,
    directory,
    mark,
    pollIntervalMs: 3_600_000,
    ...state,
  });
  await started.loader.start();
  return started;
}

describe('a verifier without a mark of its own', () => {
  it('goes by the shared one: nothing lower is loaded, and no other content of that revision', async () => {
    const directory = await newDirectory();
    const shared = new FakeSharedMark();
    for (const [mark, content, code] of [
      [at(6), revision(5), 'revision_lower'],
      [at(5), revision(5), 'revision_conflict'],
    ] as const) {
      shared.put(AUTH_SITE, mark);
      await putBundle(directory, content, keys.bundle);
      const one = mirrored(shared);
      const { loader, refused } = await startLoader(directory, one.mark);
      expect([loader.snapshot, refused]).toEqual([undefined, [`directory ${code}`]]);
      expect(one.events).toEqual([['bound', mark.revision]]);
    }
  });

  it('loads what the shared one names, and what is higher', async () => {
    const directory = await newDirectory();
    for (const higher of [0, 1]) {
      const shared = new FakeSharedMark();
      const { position } = bundleDocument(revision(5), keys.bundle);
      shared.put(AUTH_SITE, position);
      const loaded = await putBundle(directory, revision(5 + higher), keys.bundle);
      const { mark } = mirrored(shared);
      const { loader } = await startLoader(directory, mark);
      expect(loader.position).toEqual(loaded);
      await waitUntil(() => shared.raised.length > 0);
      expect(await shared.read(AUTH_SITE, 0)).toEqual(loaded);
    }
  });

  it('loads nothing while the shared one cannot be asked for, and by itself once it can', async () => {
    const directory = await newDirectory();
    await putBundle(directory, revision(5), keys.bundle);
    const shared = new FakeSharedMark();
    shared.problem = 'connection refused';
    const { mark } = mirrored(shared);
    const { loader, refused } = await startLoader(directory, mark);
    expect([loader.snapshot, refused]).toEqual([undefined, ['directory mark_unavailable']]);
    shared.problem = undefined;
    await waitUntil(() => loader.snapshot?.revision === 5 && loader.status().problem === undefined);
  });

  it('so also for what its state directory kept', async () => {
    const [directory, state] = [await newDirectory(), await newDirectory()];
    await putBundle(directory, revision(5), keys.bundle);
    await (await startLoader(directory, new MemoryMark(), state)).stop();
    const shared = new FakeSharedMark();
    shared.problem = 'connection refused';
    const empty = await newDirectory();
    const { loader, refused } = await startLoader(empty, mirrored(shared).mark, state);
    expect(loader.snapshot).toBeUndefined();
    expect(refused).toContain('state mark_unavailable');
    shared.problem = undefined;
    await waitUntil(() => loader.snapshot?.revision === 5);
  });

  it('loads nothing while the shared one is no mark, and says how to go on', async () => {
    const directory = await newDirectory();
    await putBundle(directory, revision(5), keys.bundle);
    const shared = new FakeSharedMark();
    shared.put(AUTH_SITE, 'unreadable');
    const { loader, refused } = await startLoader(directory, mirrored(shared).mark);
    expect([loader.snapshot, refused]).toEqual([undefined, ['directory mark_corrupt']]);
    expect(loader.status().problem?.error.message).toContain('reset-mark');
    await shared.reset(AUTH_SITE, 0);
    await loader.reload();
    expect(loader.snapshot?.revision).toBe(5);
  });
});

describe('a verifier with a mark of its own', () => {
  it('is not bound by the shared one, higher, lower or away: it does not even ask', async () => {
    const [directory, state] = [await newDirectory(), await newDirectory()];
    const own = () => new FileMark({ stateDirectory: state, authSite: AUTH_SITE });
    const position = await putBundle(directory, revision(5), keys.bundle);
    await own().raise(position);
    for (const problem of [undefined, 'connection refused']) {
      const shared = new FakeSharedMark();
      shared.put(AUTH_SITE, at(9));
      shared.problem = problem;
      const { mark } = mirrored(shared, { own: own() });
      const { loader } = await startLoader(directory, mark);
      expect([loader.position, shared.reads]).toEqual([position, 0]);
    }
  });

  it('that cannot be read is not replaced by the shared one', async () => {
    const own: HighWaterMark = {
      position: () => Promise.reject(new Error('unreadable')),
      raise: async () => undefined,
    };
    const { mark } = mirrored(new FakeSharedMark(), { own });
    await mark.start();
    await expect(mark.position()).rejects.toThrow('unreadable');
  });
});

describe('the shared mark', () => {
  it('is raised at the start, and again from time to time: one that was lost comes back', async () => {
    const own = new MemoryMark();
    await own.raise(at(5));
    const shared = new FakeSharedMark();
    const { mark } = mirrored(shared, { own, repeatIntervalMs: 10 });
    await mark.start();
    await waitUntil(() => shared.raised.length === 1);
    await shared.reset(AUTH_SITE, 0);
    const before = shared.raised.length;
    await waitUntil(() => shared.raised.length > before);
    expect(await shared.read(AUTH_SITE, 0)).toEqual(at(5));
  });

  it('never keeps a load waiting, and of many steps gets the last', async () => {
    const shared = new FakeSharedMark();
    const { mark } = mirrored(shared, { raiseIntervalMs: 50 });
    for (let number = 1; number <= 30; number++) await mark.raise(at(number));
    expect(await mark.position()).toEqual(at(30));
    await waitUntil(() => shared.raised.at(-1) === 30);
    expect(shared.raised.length).toBeLessThanOrEqual(3);
  });

  it('is raised once it can be, reported once as a problem and once as over', async () => {
    const shared = new FakeSharedMark();
    shared.problem = 'connection refused';
    const { mark, events } = mirrored(shared);
    await mark.raise(at(5));
    await waitUntil(() => shared.raised.length > 2);
    shared.problem = undefined;
    await waitUntil(() => events.length === 2);
    expect(events).toEqual([['raiseFailed', 'unavailable'], ['raiseWorksAgain']]);
    expect(await shared.read(AUTH_SITE, 0)).toEqual(at(5));
  });

  it('does not fall, and another content of the same revision is reported', async () => {
    const shared = new FakeSharedMark();
    shared.put(AUTH_SITE, at(5, 'B'));
    const { mark, events } = mirrored(shared);
    await mark.raise(at(4));
    await mark.raise(at(5));
    await waitUntil(() => events.length > 0);
    expect(events).toEqual([['disagrees', at(5).head, at(5, 'B').head]]);
    expect(await shared.read(AUTH_SITE, 0)).toEqual(at(5, 'B'));
  });

  it('gets the last step when the verifier ends', async () => {
    const shared = new FakeSharedMark();
    const { mark } = mirrored(shared, { raiseIntervalMs: 3_600_000 });
    await mark.raise(at(1));
    await waitUntil(() => shared.raised.length === 1);
    await mark.raise(at(2));
    await mark.close();
    expect(await shared.read(AUTH_SITE, 0)).toEqual(at(2));
  });
});
