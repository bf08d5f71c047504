/** Forgetting a mark: all of it, on the record, and not under a verifier at work. */
import { mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { isDirectoryLocked, lockDirectory } from '../../../src/process/files/directory-lock.ts';
import { FileMark, MARK_FILE } from '../../../src/verifier/loading/state/high-water-mark.ts';
import {
  RESET_LOG_FILE,
  type ResetMarkOptions,
  resetMark,
} from '../../../src/verifier/loading/state/reset-mark.ts';
import { newDirectory } from '../../support/bundle/bundle-directory.ts';
import { rejection } from '../../support/bundle/rejection.ts';
import { FakeSharedMark } from '../../support/fakes/shared-mark.ts';
import { AUTH_SITE } from '../../support/fixtures/bundle-content.ts';
import { closeAfterTest } from './loader-fixture.ts';

const own = { revision: 7, head: 'A'.repeat(43) };
const higher = { revision: 9, head: 'B'.repeat(43) };

const resetIn = (stateDirectory: string, shared?: FakeSharedMark, more: Partial<ResetMarkOptions> = {}) =>
  resetMark({
    stateDirectory,
    authSite: AUTH_SITE,
    shared,
    sharedTimeoutMs: 1000,
    by: { user: 'olga' },
    now: () => new Date(0),
    ...more,
  });

async function stateWithMark() {
  const stateDirectory = await newDirectory();
  await new FileMark({ stateDirectory, authSite: AUTH_SITE }).raise(own);
  await mkdir(join(stateDirectory, 'bases', '7-0123456789abcdef'), { recursive: true });
  await symlink('bases/7-0123456789abcdef', join(stateDirectory, 'current'));
  const shared = new FakeSharedMark();
  shared.put(AUTH_SITE, higher);
  const reset = (more: { authSite?: string; shared?: FakeSharedMark | undefined } = {}) =>
    resetIn(stateDirectory, shared, more);
  const recorded = async () => {
    const lines = (await readFile(join(stateDirectory, RESET_LOG_FILE), 'utf8').catch(() => '')).split('\n');
    return lines.filter((line) => line !== '').map((line): unknown => JSON.parse(line));
  };
  return { stateDirectory, shared, reset, recorded };
}

describe('resetting a mark', () => {
  it('forgets the own one, the shared one and the bundle that was kept, and says who did so when', async () => {
    const { recorded, reset, shared, stateDirectory } = await stateWithMark();
    shared.put('another-site', higher);
    const kept = 'bases/7-0123456789abcdef';
    expect(await reset()).toEqual({ own, shared: higher, keptBundle: kept });
    expect((await readdir(stateDirectory)).sort()).toEqual(['bases', RESET_LOG_FILE]);
    expect(await shared.read(AUTH_SITE, 0)).toBeUndefined();
    expect(await shared.read('another-site', 0)).toEqual(higher);
    const event = {
      event: 'proofgate.mark_reset',
      time: '1970-01-01T00:00:00.000Z',
      auth_site: AUTH_SITE,
      by: { user: 'olga' },
      own_mark: own,
      kept_bundle: kept,
    };
    expect(await recorded()).toEqual([
      { ...event, phase: 'begun' },
      { ...event, phase: 'done', shared_mark: higher },
    ]);
  });

  it('forgets what is no mark, on both sides', async () => {
    const { reset, shared, stateDirectory } = await stateWithMark();
    await writeFile(join(stateDirectory, MARK_FILE), '{');
    shared.put(AUTH_SITE, 'unreadable');
    expect(await reset()).toMatchObject({ own: 'unreadable', shared: 'unreadable' });
    expect(await readdir(stateDirectory)).not.toContain(MARK_FILE);
  });

  it('where there is none says so, and may be done again', async () => {
    const { reset } = await stateWithMark();
    await reset();
    expect(await reset()).toEqual({ own: undefined, shared: undefined, keptBundle: undefined });
  });

  it('without the shared mark leaves that alone', async () => {
    const { reset, shared } = await stateWithMark();
    expect(await reset({ shared: undefined })).toMatchObject({ own, shared: 'not_asked' });
    expect(await shared.read(AUTH_SITE, 0)).toEqual(higher);
  });

  it('forgets nothing when the shared one cannot be reached, and has said what it was about to do', async () => {
    const { recorded, reset, shared, stateDirectory } = await stateWithMark();
    shared.problem = 'connection refused';
    await expect(reset()).rejects.toMatchObject({ fault: 'unavailable' });
    expect(await readdir(stateDirectory)).toEqual(expect.arrayContaining([MARK_FILE, 'current']));
    expect(await recorded()).toMatchObject([{ phase: 'begun' }]);
  });

  it('is refused for another site than the state directory’s', async () => {
    const { recorded, reset, stateDirectory } = await stateWithMark();
    expect(await rejection(() => reset({ authSite: 'other' }))).toMatchObject({
      code: 'mark_of_another_site',
    });
    expect(await readdir(stateDirectory)).toContain(MARK_FILE);
    expect(await recorded()).toEqual([]);
  });
});

describe('a directory where no verifier has kept anything', () => {
  const sharedMark = () => {
    const shared = new FakeSharedMark();
    shared.put(AUTH_SITE, higher);
    return shared;
  };

  it.each([
    ['empty', async () => undefined],
    ['of a bundle', (directory: string) => writeFile(join(directory, 'bundle.jws.json'), '{}')],
    ['with a link of others', (directory: string) => symlink('releases/7', join(directory, 'current'))],
  ])('is refused, and nothing written into it: %s', async (_what, fill) => {
    const directory = await newDirectory();
    await fill(directory);
    const before = await readdir(directory);
    expect(await rejection(() => resetIn(directory))).toMatchObject({ code: 'mark_missing' });
    expect(await readdir(directory)).toEqual(before);
  });

  it('is refused with the shared mark, too, where it holds files of others', async () => {
    const [directory, shared] = [await newDirectory(), sharedMark()];
    await writeFile(join(directory, 'bundle.jws.json'), '{}');
    expect(await rejection(() => resetIn(directory, shared))).toMatchObject({ code: 'mark_missing' });
    expect(await shared.read(AUTH_SITE, 0)).toEqual(higher);
  });

  it('is that of a newcomer which the shared mark binds', async () => {
    const [directory, shared] = [await newDirectory(), sharedMark()];
    await mkdir(join(directory, 'bases'));
    expect(await resetIn(directory, shared)).toMatchObject({ own: undefined, shared: higher });
    expect(await shared.read(AUTH_SITE, 0)).toBeUndefined();
  });

  it('may hold a kept bundle, or what was no mark', async () => {
    const kept = await newDirectory();
    await symlink('bases/7-0123456789abcdef', join(kept, 'current'));
    expect(await resetIn(kept)).toMatchObject({ own: undefined, keptBundle: 'bases/7-0123456789abcdef' });
    const corrupt = await newDirectory();
    await writeFile(join(corrupt, MARK_FILE), '{');
    expect(await resetIn(corrupt)).toMatchObject({ own: 'unreadable' });
  });
});

describe('a verifier at work', () => {
  it('keeps the mark from being reset, and no longer once it has ended', async () => {
    const { recorded, reset, stateDirectory } = await stateWithMark();
    const [first, second] = [await lockDirectory(stateDirectory), await lockDirectory(stateDirectory)];
    for (const lock of [first, second]) closeAfterTest(lock.release);
    expect(await rejection(reset)).toMatchObject({ code: 'state_dir_in_use' });
    await first.release();
    expect(await rejection(reset)).toMatchObject({ code: 'state_dir_in_use' });
    expect(await recorded()).toEqual([]);
    await second.release();
    expect(await reset()).toMatchObject({ own });
  });

  it('that was killed is no longer there, and what it left is removed', async () => {
    const stateDirectory = await newDirectory();
    // A socket's file whose process is gone: a server of another process that ends without closing it.
    const { spawnSync } = await import('node:child_process');
    const script =
      "require('net').createServer().listen(process.argv[1], () => process.kill(process.pid, 'SIGKILL'))";
    const path = join(stateDirectory, '.verifier-0123456789abcdef');
    const { signal } = spawnSync(process.execPath, ['-e', script, path]);
    expect([signal, await readdir(stateDirectory)]).toEqual(['SIGKILL', ['.verifier-0123456789abcdef']]);
    expect(await isDirectoryLocked(stateDirectory)).toBe(false);
    expect(await readdir(stateDirectory)).toEqual([]);
  });

  it('is seen in a directory with a long path, too', async () => {
    const stateDirectory = join(await newDirectory(), 'x'.repeat(60), 'y'.repeat(60));
    await mkdir(stateDirectory, { recursive: true });
    const lock = await lockDirectory(stateDirectory);
    closeAfterTest(lock.release);
    expect(await isDirectoryLocked(stateDirectory)).toBe(true);
    await lock.release();
    expect([await isDirectoryLocked(stateDirectory), await readdir(stateDirectory)]).toEqual([false, []]);
  });
});
