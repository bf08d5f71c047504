/** A bundle's life in a verifier: what is loaded, what stays, what is remembered. */
import { mkdir, rename, rm, symlink, unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { makeShards } from '../../../src/bundle/compile/key-shards.ts';
import type { BundleContent } from '../../../src/bundle/format/schema.ts';
import { formatTime } from '../../../src/protocol/rfc3339.ts';
import type { BundleLoaderOptions } from '../../../src/verifier/loading/bundle-loader.ts';
import {
  FileMark,
  type HighWaterMark,
  MARK_FILE,
  MemoryMark,
} from '../../../src/verifier/loading/state/high-water-mark.ts';
import {
  bundleDocument,
  freshnessDocument,
  newDirectory,
  putBundle,
} from '../../support/bundle/bundle-directory.ts';
import {
  AUTH_SITE,
  bundleContent,
  NOW_SECONDS,
  newSigningKey,
  newTestKeys,
} from '../../support/fixtures/bundle-content.ts';
import { waitUntil } from '../../support/wait.ts';
import { newTestLoader } from './loader-fixture.ts';

const keys = newTestKeys();
const stranger = newSigningKey();
const revision = (number: number, more: Partial<BundleContent> = {}): BundleContent => ({
  ...bundleContent(keys),
  revision: number,
  ...more,
});

const newLoader = (directory: string, more: Partial<BundleLoaderOptions> = {}) =>
  newTestLoader({ signer: keys.bundle, directory, ...more });

async function putFreshness(directory: string, head: string, asOfSeconds: number, number = 1): Promise<void> {
  const statement = { authSite: AUTH_SITE, revision: number, head, asOfSeconds };
  await writeFile(join(directory, 'freshness.jws'), freshnessDocument(statement, keys.bundle));
}

describe('raising the mark', () => {
  it('comes before a bundle is used, with what belongs to it, which may reject the bundle', async () => {
    const directory = await newDirectory();
    await putBundle(directory, revision(1), keys.bundle);
    const mark = new MemoryMark();
    const seen: unknown[] = [];
    let fails = true;
    const { loader, refused } = newLoader(directory, {
      mark,
      raising: async ({ revision: of }, raise) => {
        seen.push([of, (await mark.position())?.revision, loader.position?.revision]);
        if (fails) throw new Error('not prepared');
        await raise();
        seen.push([of, (await mark.position())?.revision, loader.position?.revision]);
      },
    });
    await loader.reload();
    expect([seen, refused]).toEqual([[[1, undefined, undefined]], ['directory internal']]);
    fails = false;
    await loader.reload();
    expect(seen.slice(1)).toEqual([
      [1, undefined, undefined],
      [1, 1, undefined],
    ]);
    expect(loader.position?.revision).toBe(1);
  });
});

describe('loading', () => {
  it('takes a bundle, and looks again without loading again', async () => {
    const directory = await newDirectory();
    const { head } = await putBundle(directory, revision(1), keys.bundle);
    const { loader, events } = newLoader(directory);
    await loader.reload();
    const { snapshot } = loader;
    expect(snapshot).toMatchObject({ revision: 1, head, freshAsOfSeconds: NOW_SECONDS });
    await loader.reload();
    // The same content in another file is nothing new either.
    await putBundle(directory, revision(1), keys.bundle);
    await loader.reload();
    expect(loader.snapshot).toBe(snapshot);
    expect(events).toEqual([['loaded', 1, 'directory']]);
    expect(loader.status()).toMatchObject({ loadedAtSeconds: NOW_SECONDS, problem: undefined });
  });

  it('has nothing where there is nothing, says so once, and recovers', async () => {
    const directory = join(await newDirectory(), 'later');
    const { loader, events } = newLoader(directory);
    await loader.reload();
    await loader.reload();
    expect(loader.snapshot).toBeUndefined();
    expect(loader.status().problem?.error.code).toBe('file_missing');
    await mkdir(directory);
    await putBundle(directory, revision(1), keys.bundle);
    await loader.reload();
    expect(loader.snapshot?.revision).toBe(1);
    expect(loader.status().problem).toBeUndefined();
    expect(events).toContainEqual(['loaded', 1, 'directory']);
    expect(events.filter(([event]) => event === 'refused')).toHaveLength(1);
  });

  it('swaps to a higher revision and leaves the old snapshot to those who hold it', async () => {
    const directory = await newDirectory();
    await putBundle(directory, revision(1), keys.bundle);
    const { loader } = newLoader(directory);
    await loader.reload();
    const before = loader.snapshot;
    await putBundle(directory, revision(9, { derived_keys: [] }), keys.bundle);
    await loader.reload();
    expect(loader.snapshot?.revision).toBe(9);
    expect(before?.keys.get('dk_billing')).toBeDefined();
    expect(loader.snapshot?.keys.get('dk_billing')).toBeUndefined();
    // Checked once: the very same key object came through the reload.
    expect(loader.snapshot?.keys.get('broker-1')?.key).toBe(before?.keys.get('broker-1')?.key);
  });

  it('keeps the last good one whatever comes, and clears the problem when it is back', async () => {
    const directory = await newDirectory();
    await putBundle(directory, revision(2), keys.bundle);
    const { loader, events, clock } = newLoader(directory);
    await loader.reload();
    const good = loader.snapshot;
    const bad: readonly [code: string, put: () => Promise<unknown>][] = [
      ['document_malformed', () => writeFile(join(directory, 'bundle.jws'), 'garbage')],
      ['signatures_insufficient', () => putBundle(directory, revision(3), stranger)],
      ['unknown_member', () => putBundle(directory, { ...revision(3), ...{ x: 1 } }, keys.bundle)],
      ['auth_site_mismatch', () => putBundle(directory, revision(3, { auth_site: 'b' }), keys.bundle)],
      ['route_unknown', () => putBundle(directory, revision(3, { routes: [] }), keys.bundle)],
      ['revision_lower', () => putBundle(directory, revision(1), keys.bundle)],
      ['revision_conflict', () => putBundle(directory, revision(2, { skew_seconds: 9 }), keys.bundle)],
      ['file_missing', () => unlink(join(directory, 'bundle.jws'))],
      ['file_not_regular', () => mkdir(join(directory, 'bundle.jws'))],
    ];
    for (const [code, put] of bad) {
      clock.nowSeconds++;
      await put();
      await loader.reload();
      expect(events.at(-1)).toEqual(['refused', code, 'directory']);
      expect(loader.status().problem?.sinceSeconds).toBe(clock.nowSeconds);
      expect(loader.snapshot).toBe(good);
    }
    await rm(join(directory, 'bundle.jws'), { recursive: true });
    await putBundle(directory, revision(2), keys.bundle);
    await loader.reload();
    expect(loader.status().problem).toBeUndefined();
    expect(loader.snapshot).toBe(good);
  });

  it('asks the verifier’s own conditions at every load', async () => {
    const directory = await newDirectory();
    await putBundle(directory, revision(1, { single_verifier: true }), keys.bundle);
    const { loader, events } = newLoader(directory, {
      acceptSnapshot: ({ singleVerifier }) => (singleVerifier ? undefined : 'only single_verifier bundles'),
    });
    await loader.reload();
    await putBundle(directory, revision(2), keys.bundle);
    await loader.reload();
    expect(loader.snapshot?.revision).toBe(1);
    expect(events.at(-1)).toEqual(['refused', 'refused_by_policy', 'directory']);
    expect(loader.status().problem?.error.message).toContain('only single_verifier bundles');
    // A rejected bundle leaves no mark: the previous one may come again.
    await putBundle(directory, revision(2, { single_verifier: true }), keys.bundle);
    await loader.reload();
    expect(loader.snapshot?.revision).toBe(2);
  });

  it('loads shards, and not ones with other bytes', async () => {
    const directory = await newDirectory();
    const { derived_keys: derivedKeys = [], ...rest } = revision(1);
    const [shard] = makeShards(derivedKeys);
    if (shard === undefined) throw new Error('no shard');
    await putBundle(directory, { ...rest, key_shards: [shard.entry] }, keys.bundle);
    const { loader, events } = newLoader(directory);
    await loader.reload();
    await writeFile(join(directory, shard.entry.file), Buffer.concat([shard.bytes, Buffer.from(' ')]));
    await loader.reload();
    await writeFile(join(directory, shard.entry.file), shard.bytes);
    await loader.reload();
    expect(events).toEqual([
      ['refused', 'file_missing', 'directory'],
      ['refused', 'shard_mismatch', 'directory'],
      ['loaded', 1, 'directory'],
    ]);
    expect(loader.snapshot?.keys.get('dk_billing')?.kind).toBe('derived_key');
  });
});

describe('freshness', () => {
  it('makes the snapshot younger and shares its tables', async () => {
    const directory = await newDirectory();
    const { head } = await putBundle(directory, revision(1), keys.bundle);
    await putFreshness(directory, head, NOW_SECONDS + 10);
    const { loader, events, clock } = newLoader(directory);
    clock.nowSeconds = NOW_SECONDS + 10;
    await loader.reload();
    const first = loader.snapshot;
    expect(first?.freshAsOfSeconds).toBe(NOW_SECONDS + 10);
    await putFreshness(directory, head, NOW_SECONDS + 13);
    await loader.reload();
    expect(loader.snapshot).toEqual({ ...first, freshAsOfSeconds: NOW_SECONDS + 13 });
    expect(loader.snapshot?.routes).toBe(first?.routes);
    expect(loader.snapshot?.keys).toBe(first?.keys);
    expect(events).toEqual([
      ['loaded', 1, 'directory'],
      ['freshened', NOW_SECONDS + 13],
    ]);
  });

  it('never makes it older, also when the statement is old or gone', async () => {
    const directory = await newDirectory();
    const { head } = await putBundle(directory, revision(1), keys.bundle);
    await putFreshness(directory, head, NOW_SECONDS + 4);
    const { loader } = newLoader(directory);
    await loader.reload();
    await putFreshness(directory, head, NOW_SECONDS - 100);
    await loader.reload();
    await unlink(join(directory, 'freshness.jws'));
    await loader.reload();
    expect(loader.snapshot?.freshAsOfSeconds).toBe(NOW_SECONDS + 4);
    expect(loader.status()).toMatchObject({ freshnessProblem: undefined, freshnessIgnored: undefined });
  });

  it.each([
    ['other_revision', 2, 0],
    ['other_head', 1, 0],
    ['ahead_of_clock', 1, 6],
  ])('is ignored: %s', async (why, number, aheadSeconds) => {
    const directory = await newDirectory();
    const { head } = await putBundle(directory, revision(1), keys.bundle);
    const otherHead = Buffer.alloc(32, 1).toString('base64url');
    await putFreshness(directory, aheadSeconds > 0 ? head : otherHead, NOW_SECONDS + aheadSeconds, number);
    const { loader, events } = newLoader(directory);
    await loader.reload();
    await loader.reload();
    expect(loader.snapshot?.freshAsOfSeconds).toBe(NOW_SECONDS);
    expect(loader.status().freshnessIgnored).toBe(why);
    expect(events.filter(([event]) => event === 'freshnessIgnored')).toEqual([['freshnessIgnored', why]]);
  });

  it('is applied once the clock, or the bundle, has caught up', async () => {
    const directory = await newDirectory();
    const { head } = await putBundle(directory, revision(1), keys.bundle);
    await putFreshness(directory, head, NOW_SECONDS + 6);
    const { loader, clock } = newLoader(directory);
    await loader.reload();
    clock.nowSeconds++;
    await loader.reload();
    expect(loader.snapshot?.freshAsOfSeconds).toBe(NOW_SECONDS + 6);
    const next = bundleDocument(revision(2), keys.bundle);
    await putFreshness(directory, next.position.head, NOW_SECONDS + 2, 2);
    await loader.reload();
    expect(loader.status().freshnessIgnored).toBe('other_revision');
    await writeFile(join(directory, 'bundle.jws'), next.bytes);
    await loader.reload();
    expect(loader.snapshot).toMatchObject({ revision: 2, freshAsOfSeconds: NOW_SECONDS + 2 });
    expect(loader.status().freshnessIgnored).toBeUndefined();
  });

  it('that is not well signed takes nothing back', async () => {
    const directory = await newDirectory();
    const position = await putBundle(directory, revision(1), keys.bundle);
    await putFreshness(directory, position.head, NOW_SECONDS + 3);
    const { loader, events } = newLoader(directory);
    await loader.reload();
    const statement = { authSite: AUTH_SITE, ...position, asOfSeconds: NOW_SECONDS + 4 };
    await writeFile(join(directory, 'freshness.jws'), freshnessDocument(statement, stranger));
    await loader.reload();
    expect(loader.snapshot?.freshAsOfSeconds).toBe(NOW_SECONDS + 3);
    expect(loader.status().freshnessProblem?.error.code).toBe('signatures_insufficient');
    await writeFile(join(directory, 'freshness.jws'), bundleDocument(revision(1), keys.bundle).bytes);
    await loader.reload();
    expect(loader.status().freshnessProblem?.error.code).toBe('document_type');
    expect(loader.status().problem).toBeUndefined();
    expect(events.filter(([event]) => event === 'freshnessRefused')).toHaveLength(2);
  });

  it('has keys of its own where they are pinned', async () => {
    const directory = await newDirectory();
    const position = await putBundle(directory, revision(1), keys.bundle);
    await putFreshness(directory, position.head, NOW_SECONDS + 3);
    const { loader } = newLoader(directory, {
      freshnessSigners: { keys: [stranger.publicKey], threshold: 1 },
    });
    await loader.reload();
    expect(loader.status().freshnessProblem?.error.code).toBe('signatures_insufficient');
    const statement = { authSite: AUTH_SITE, ...position, asOfSeconds: NOW_SECONDS + 3 };
    await writeFile(join(directory, 'freshness.jws'), freshnessDocument(statement, stranger));
    await loader.reload();
    expect(loader.snapshot?.freshAsOfSeconds).toBe(NOW_SECONDS + 3);
  });
});

describe('the high-water mark', () => {
  const fileMark = (stateDirectory: string) => new FileMark({ stateDirectory, authSite: AUTH_SITE });

  it('survives a restart: the same bundle loads, a lower one and a fork do not', async () => {
    const [directory, state] = [await newDirectory(), await newDirectory()];
    await putBundle(directory, revision(5), keys.bundle);
    await newLoader(directory, { mark: fileMark(state) }).loader.reload();

    const again = newLoader(directory, { mark: fileMark(state) });
    await again.loader.reload();
    expect(again.events).toEqual([['loaded', 5, 'directory']]);

    for (const [content, code] of [
      [revision(4), 'revision_lower'],
      [revision(5, { skew_seconds: 7 }), 'revision_conflict'],
    ] as const) {
      await putBundle(directory, content, keys.bundle);
      const { loader, events } = newLoader(directory, { mark: fileMark(state) });
      await loader.reload();
      expect(events).toEqual([['refused', code, 'directory']]);
      expect(loader.snapshot).toBeUndefined();
    }
  });

  it.each([
    ['empty', '', 'mark_corrupt'],
    ['cut short', '{"format":"proofgate.mark/v1","auth_s', 'mark_corrupt'],
    ['null', 'null', 'mark_corrupt'],
    ['revision as text', markText({ revision: '5' }), 'mark_corrupt'],
    ['revision 0', markText({ revision: 0 }), 'mark_corrupt'],
    ['head too short', markText({ head: 'abc' }), 'mark_corrupt'],
    ['another format', markText({ format: 'proofgate.mark/v2' }), 'mark_corrupt'],
    ['unknown member', markText({ x: 1 }), 'mark_corrupt'],
    ['too large', ' '.repeat(5000), 'mark_corrupt'],
    ['of another site', markText({ auth_site: 'other' }), 'mark_of_another_site'],
  ])('that cannot be read lets nothing be loaded: %s', async (_name, text, code) => {
    const [directory, state] = [await newDirectory(), await newDirectory()];
    await putBundle(directory, revision(5), keys.bundle);
    await writeFile(join(state, MARK_FILE), text);
    const { loader, events } = newLoader(directory, { mark: fileMark(state) });
    await loader.reload();
    expect(events).toEqual([['refused', code, 'directory']]);
    expect(loader.snapshot).toBeUndefined();
    // Restored by an operator, without a restart.
    await unlink(join(state, MARK_FILE));
    await loader.reload();
    expect(loader.snapshot?.revision).toBe(5);
  });

  function markText(change: object): string {
    const mark = { format: 'proofgate.mark/v1', auth_site: AUTH_SITE, revision: 5, head: 'A'.repeat(43) };
    return JSON.stringify({ ...mark, ...change });
  }

  it('that cannot be written keeps the old bundle', async () => {
    const [directory, state] = [await newDirectory(), await newDirectory()];
    await putBundle(directory, revision(1), keys.bundle);
    const { loader, events } = newLoader(directory, { mark: fileMark(state) });
    await loader.reload();
    await rm(state, { recursive: true });
    await putBundle(directory, revision(2), keys.bundle);
    await loader.reload();
    expect(loader.snapshot?.revision).toBe(1);
    expect(events.at(-1)).toEqual(['refused', 'file_not_written', 'directory']);
    await mkdir(state);
    await loader.reload();
    expect(loader.snapshot?.revision).toBe(2);
  });

  it('is written before the swap', async () => {
    const directory = await newDirectory();
    await putBundle(directory, revision(1), keys.bundle);
    const seen: (number | undefined)[] = [];
    const memory = new MemoryMark();
    const mark: HighWaterMark = {
      position: () => memory.position(),
      raise: async (position) => {
        seen.push(loader.snapshot?.revision);
        await memory.raise(position);
      },
    };
    const { loader } = newLoader(directory, { mark });
    await loader.reload();
    expect(seen).toEqual([undefined]);
    expect(loader.snapshot?.revision).toBe(1);
  });

  it('does not fall', async () => {
    const state = await newDirectory();
    const mark = fileMark(state);
    await mark.raise({ revision: 5, head: 'A'.repeat(43) });
    await mark.raise({ revision: 4, head: 'B'.repeat(43) });
    expect(await mark.position()).toEqual({ revision: 5, head: 'A'.repeat(43) });
    expect(await fileMark(state).position()).toEqual({ revision: 5, head: 'A'.repeat(43) });
  });

  it('is not that of a verifier whose state directory is missing', async () => {
    const directory = await newDirectory();
    await putBundle(directory, revision(1), keys.bundle);
    const { loader, events } = newLoader(directory, { mark: fileMark(join(directory, 'not-mounted')) });
    await loader.reload();
    expect(events).toEqual([['refused', 'file_not_written', 'directory']]);
    expect(loader.snapshot).toBeUndefined();
  });
});

describe('watching', () => {
  it('notices a new bundle and a new statement', async () => {
    const directory = await newDirectory();
    await putBundle(directory, revision(1), keys.bundle);
    const { loader } = newLoader(directory, { pollIntervalMs: 20 });
    await loader.start();
    expect(loader.snapshot?.revision).toBe(1);
    const { head } = await putBundle(directory, revision(2), keys.bundle);
    await waitUntil(() => loader.snapshot?.revision === 2);
    await putFreshness(directory, head, NOW_SECONDS + 5, 2);
    await waitUntil(() => loader.snapshot?.freshAsOfSeconds === NOW_SECONDS + 5);
  });

  it('notices at once, long before the poll', async () => {
    const directory = await newDirectory();
    await putBundle(directory, revision(1), keys.bundle);
    const { loader } = newLoader(directory, { pollIntervalMs: 3_600_000 });
    await loader.start();
    await putBundle(directory, revision(2), keys.bundle);
    await waitUntil(() => loader.snapshot?.revision === 2);
  });

  it.each([20, 3_600_000])(
    'follows Kubernetes’ swap of ..data (poll every %d ms)',
    async (pollIntervalMs) => {
      const volume = await newDirectory();
      await publish(volume, 1);
      await symlink(join('..data', 'bundle.jws'), join(volume, 'bundle.jws'));
      await symlink(join('..data', 'freshness.jws'), join(volume, 'freshness.jws'));
      const { loader, events } = newLoader(volume, { pollIntervalMs });
      await loader.start();
      expect(loader.snapshot).toMatchObject({ revision: 1, freshAsOfSeconds: NOW_SECONDS + 1 });
      for (const number of [2, 3, 4]) {
        await publish(volume, number);
        await waitUntil(() => loader.snapshot?.freshAsOfSeconds === NOW_SECONDS + number);
        expect(loader.snapshot?.revision).toBe(number);
      }
      expect(events.filter(([event]) => event.endsWith('efused'))).toEqual([]);
    },
  );

  /** As the kubelet does: a new directory, a new link, one rename, and away with the old one. */
  async function publish(volume: string, number: number): Promise<void> {
    const version = `..version-${number}`;
    await mkdir(join(volume, version));
    const { head } = await putBundle(join(volume, version), revision(number), keys.bundle);
    await putFreshness(join(volume, version), head, NOW_SECONDS + number, number);
    await symlink(version, join(volume, '..data_tmp'));
    await rename(join(volume, '..data_tmp'), join(volume, '..data'));
    await rm(join(volume, `..version-${number - 1}`), { recursive: true, force: true });
  }

  it('tries again by itself what may pass', async () => {
    const [directory, state] = [await newDirectory(), await newDirectory()];
    await putBundle(directory, revision(1), keys.bundle);
    await writeFile(join(state, MARK_FILE), 'garbage');
    const mark = new FileMark({ stateDirectory: state, authSite: AUTH_SITE });
    const { loader } = newLoader(directory, { mark, pollIntervalMs: 10 });
    await loader.start();
    expect(loader.status().problem?.error.code).toBe('mark_corrupt');
    await unlink(join(state, MARK_FILE));
    await waitUntil(() => loader.snapshot !== undefined);
  });

  it('ends', async () => {
    const directory = await newDirectory();
    await putBundle(directory, revision(1), keys.bundle);
    const { loader, events } = newLoader(directory, { pollIntervalMs: 10 });
    await loader.start();
    loader.close();
    const other = newLoader(directory, { pollIntervalMs: 50 }).loader;
    await other.start();
    await putBundle(directory, revision(2), keys.bundle);
    await waitUntil(() => other.snapshot?.revision === 2);
    expect(events).toEqual([['loaded', 1, 'directory']]);
  });

  it('keeps applying statements while a bundle is being compiled', async () => {
    const directory = await newDirectory();
    const { head } = await putBundle(directory, revision(1), keys.bundle);
    let release: (() => void) | undefined;
    const memory = new MemoryMark();
    const mark: HighWaterMark = {
      position: () => memory.position(),
      raise: async (position) => {
        if (position.revision === 2) {
          await new Promise<void>((resolve) => {
            release = resolve;
          });
        }
        await memory.raise(position);
      },
    };
    const { loader } = newLoader(directory, { mark, pollIntervalMs: 10 });
    await loader.start();
    await putBundle(directory, revision(2, { expires_at: formatTime(NOW_SECONDS + 99) }), keys.bundle);
    await waitUntil(() => release !== undefined);
    await putFreshness(directory, head, NOW_SECONDS + 5);
    await waitUntil(() => loader.snapshot?.freshAsOfSeconds === NOW_SECONDS + 5);
    expect(loader.snapshot?.revision).toBe(1);
    release?.();
    await waitUntil(() => loader.snapshot?.revision === 2);
  });
});
