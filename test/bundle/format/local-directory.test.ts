import { execFileSync } from 'node:child_process';
import { mkdir, rename, rm, symlink, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { DOCUMENTS } from '../../../src/bundle/format/documents.ts';
import { LocalDirectory } from '../../../src/bundle/format/local-directory.ts';
import { newDirectory } from '../../support/bundle/bundle-directory.ts';
import { codeAndPath } from '../../support/bundle/rejection.ts';

const readBundle = (path: string) => new LocalDirectory(path).read((files) => files.readBundle());
const readFreshness = (path: string) => new LocalDirectory(path).read((files) => files.readFreshness());

describe('files', () => {
  it('are read whole', async () => {
    const directory = await newDirectory();
    await writeFile(join(directory, 'bundle.jws'), 'bundle');
    expect(String(await readBundle(directory))).toBe('bundle');
    expect(await readFreshness(directory)).toBeUndefined();
  });

  it('may be links to files, and their directory a link', async () => {
    const directory = await newDirectory();
    await mkdir(join(directory, 'real'));
    await writeFile(join(directory, 'elsewhere'), 'bundle');
    await symlink('../elsewhere', join(directory, 'real', 'bundle.jws'));
    await symlink('real', join(directory, 'link'));
    expect(String(await readBundle(join(directory, 'link')))).toBe('bundle');
  });

  it('must be regular', async () => {
    const directory = await newDirectory();
    await mkdir(join(directory, 'freshness.jws'));
    // The read must not block until a writer opens the FIFO.
    execFileSync('mkfifo', [join(directory, 'bundle.jws')]);
    expect(await codeAndPath(() => readBundle(directory))).toBe('file_not_regular ');
    expect(await codeAndPath(() => readFreshness(directory))).toBe('file_not_regular ');
  });

  it('are refused for their size before they are read', async () => {
    const directory = await newDirectory();
    await writeFile(join(directory, 'bundle.jws'), '');
    await truncate(join(directory, 'bundle.jws'), 64 * 1024 * 1024 + 1);
    await writeFile(join(directory, 'freshness.jws'), Buffer.alloc(DOCUMENTS.freshness.maxBytes + 1));
    expect(await codeAndPath(() => readBundle(directory))).toBe('file_too_large ');
    expect(await codeAndPath(() => readFreshness(directory))).toBe('file_too_large ');
  });

  it('may be missing, and so may the directory', async () => {
    const directory = await newDirectory();
    expect(await codeAndPath(() => readBundle(directory))).toBe('file_missing ');
    expect(await codeAndPath(() => readBundle(join(directory, 'nowhere')))).toBe('file_missing ');
  });
});

describe('a directory that is swapped', () => {
  async function volumeWith(version: string): Promise<string> {
    const volume = await newDirectory();
    await swapTo(volume, version);
    return volume;
  }

  async function swapTo(volume: string, version: string): Promise<void> {
    await mkdir(join(volume, version));
    await writeFile(join(volume, version, 'bundle.jws'), `bundle ${version}`);
    await writeFile(join(volume, version, 'freshness.jws'), `freshness ${version}`);
    await symlink(version, join(volume, '..data_tmp'));
    await rename(join(volume, '..data_tmp'), join(volume, '..data'));
  }

  it('gives all files of one version, whichever link is read while', async () => {
    const volume = await volumeWith('..1');
    const read = await new LocalDirectory(volume).read(async (files) => {
      const bundle = await files.readBundle();
      await swapTo(volume, '..2');
      return [String(bundle), String(await files.readFreshness())];
    });
    expect(read).toEqual(['bundle ..1', 'freshness ..1']);
    expect(String(await readBundle(volume))).toBe('bundle ..2');
  });

  it('is read again when the old version is already gone', async () => {
    const volume = await volumeWith('..1');
    let attempts = 0;
    const read = await new LocalDirectory(volume).read(async (files) => {
      if (attempts++ === 0) {
        await swapTo(volume, '..2');
        await rm(join(volume, '..1'), { recursive: true });
      }
      return String(await files.readBundle());
    });
    expect(read).toBe('bundle ..2');
    expect(attempts).toBe(2);
  });

  it('is not read again for a fault in what was read', async () => {
    const volume = await volumeWith('..1');
    let attempts = 0;
    const fault = new Error('of another kind');
    const reading = new LocalDirectory(volume).read(async () => {
      attempts++;
      await swapTo(volume, `..${attempts + 1}`);
      throw fault;
    });
    await expect(reading).rejects.toBe(fault);
    expect(attempts).toBe(1);
  });
});
