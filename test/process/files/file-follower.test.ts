import { mkdtemp, rename, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { fileFingerprint } from '../../../src/process/files/file-fingerprint.ts';
import { FileFollower } from '../../../src/process/files/file-follower.ts';
import { readInputText } from '../../../src/process/files/input-files.ts';
import { usageError } from '../../../src/process/program/errors.ts';
import { waitFor } from '../../support/wait.ts';

let directory: string;
let file: string;
const opened: FileFollower<string>[] = [];

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'proofgate-follower-'));
  file = join(directory, 'list');
  await writeFile(file, 'first');
});

afterEach(async () => {
  for (const follower of opened.splice(0)) follower.close();
  await rm(directory, { recursive: true });
});

async function replace(content: string): Promise<void> {
  await writeFile(`${file}.new`, content);
  await rename(`${file}.new`, file);
}

async function readList(): Promise<string> {
  const text = await readInputText(file, 1024);
  if (text.startsWith('bad')) throw usageError('list_invalid', text);
  return text;
}

async function follow(read = readList) {
  const taken: string[] = [];
  const faults: string[] = [];
  const follower = new FileFollower({
    fingerprint: () => fileFingerprint(file),
    seen: await fileFingerprint(file),
    read,
    take: (content) => void taken.push(content),
    onRejected: ({ code }) => void faults.push(code),
  });
  opened.push(follower);
  return { follower, taken, faults };
}

describe('a followed file', () => {
  it('is read when it changes, and not before', async () => {
    const { taken } = await follow();
    await replace('second');
    await waitFor('the second content', () => taken.length > 0);
    await replace('third');
    await waitFor('the third content', () => taken.length > 1);
    expect(taken).toEqual(['second', 'third']);
  });

  it('keeps what is in use while it is faulty, and reports each fault once', async () => {
    const { faults, follower, taken } = await follow();
    let looks = 0;
    const { faults: counted } = await follow(async () => {
      looks += 1;
      return readList();
    });
    await replace('bad 1');
    await waitFor('looks at the fault', () => looks > 2);
    expect(counted).toEqual(['list_invalid']);
    await replace('bad 2');
    await waitFor('the second fault', () => faults.length > 1 && follower.fault?.text === 'bad 2');
    expect(taken).toEqual([]);
    await rm(file);
    await waitFor('the third fault', () => faults.length > 2);
    expect(faults).toEqual(['list_invalid', 'list_invalid', 'file_unreadable']);
    await writeFile(file, 'good');
    await waitFor('the good content', () => taken.length > 0);
    expect(follower.fault).toBeUndefined();
  });

  it('is not taken when it changes while it is read', async () => {
    let reads = 0;
    const { faults, taken } = await follow(async () => {
      const text = await readList();
      reads += 1;
      if (reads === 1) await replace('whole');
      return text;
    });
    await replace('torn');
    await waitFor('the whole content', () => taken.length > 0);
    expect(taken).toEqual(['whole']);
    expect(faults).toEqual([]);
  });
});

describe('a fingerprint', () => {
  it('changes with content written in place under the old size and modification time', async () => {
    const past = new Date(1_700_000_000_000);
    await utimes(file, past, past);
    const before = await fileFingerprint(file);
    await waitFor('a later change time', async () => {
      await writeFile(file, 'First');
      await utimes(file, past, past);
      return (await fileFingerprint(file)) !== before;
    });
    expect(await fileFingerprint(file)).not.toBe(before);
  });

  it('is refused for a file that does not exist', async () => {
    await expect(fileFingerprint(file, join(directory, 'none'))).rejects.toMatchObject({ code: 'ENOENT' });
  });
});
