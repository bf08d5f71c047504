/** Tests which process holds a directory lock, as its socket tells. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import {
  type DirectoryLock,
  isDirectoryLocked,
  lockDirectory,
} from '../../../src/process/files/directory-lock.ts';

let directory = '';
const open: DirectoryLock[] = [];
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'proofgate-lock-'));
});
afterEach(async () => {
  for (const lock of open.splice(0)) await lock.release();
  await rm(directory, { recursive: true, force: true });
});

async function locked(prefix?: string): Promise<DirectoryLock> {
  const lock = await lockDirectory(directory, prefix);
  open.push(lock);
  return lock;
}

it('is shared with a process of the same purpose', async () => {
  const first = await locked('.key.pem.agent-');
  expect(await first.isHeldByOthers()).toBe(false);
  await locked('.other.pem.agent-');
  await locked();
  expect(await first.isHeldByOthers()).toBe(false);
  const second = await locked('.key.pem.agent-');
  expect([await first.isHeldByOthers(), await second.isHeldByOthers()]).toEqual([true, true]);
  await second.release();
  expect(await first.isHeldByOthers()).toBe(false);
});

it('of another kind is no verifier', async () => {
  await locked('.key.pem.agent-');
  expect(await isDirectoryLocked(directory)).toBe(false);
  await locked();
  expect(await isDirectoryLocked(directory)).toBe(true);
});
