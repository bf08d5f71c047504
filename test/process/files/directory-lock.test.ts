/** Tests which process holds a directory lock, as its socket tells. */
import { fork } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import {
  type DirectoryLock,
  isDirectoryLocked,
  lockDirectory,
} from '../../../src/process/files/directory-lock.ts';
import { checkoutPath } from '../../support/harness/checkout.ts';

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

it('is held by a worker of a cluster itself, whatever the length of the path', async () => {
  const script = join(directory, 'cluster.mjs');
  const far = join(directory, 'x'.repeat(100));
  await mkdir(far);
  const module = checkoutPath('dist', 'process', 'files', 'directory-lock.js');
  await writeFile(
    script,
    `import cluster from 'node:cluster';
if (cluster.isPrimary) {
  let others = 0;
  cluster.on('listening', () => { others += 10; });
  cluster.fork().on('exit', (code) => process.exit(code + others));
} else {
  const { isDirectoryLocked, lockDirectory } = await import(${JSON.stringify(module)});
  const directories = ${JSON.stringify([directory, far])};
  for (const each of directories) await lockDirectory(each);
  await new Promise((resolve) => process.once('disconnect', resolve) && cluster.worker.disconnect());
  const held = await Promise.all(directories.map((each) => isDirectoryLocked(each)));
  process.exit(held.every(Boolean) ? 0 : 1);
}
`,
  );
  const child = fork(script);
  expect(await new Promise((resolve) => child.once('exit', resolve))).toBe(0);
});
