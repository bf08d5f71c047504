/**
 * A small file system for tests to fill. Mounting takes privileges: without them there is no mount, and a message says which
 * test is skipped, unless `PROOFGATE_TEST_SKIPS=none` forbids skips (`make soak`).
 */
import { spawnSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, rmdirSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface SmallDisk {
  readonly path: string;
  /** Leaves no byte. */
  fill(): void;
  /** Gives back what {@link fill} took. */
  free(): void;
  remove(): void;
}

/**
 * @param tested what cannot be tested without it
 * @returns undefined where nothing may be mounted
 * @throws there, where nothing may be left out
 */
export function mountSmallDisk(kibibytes: number, tested: string): SmallDisk | undefined {
  const path = mkdtempSync(join(tmpdir(), 'proofgate-disk-'));
  const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${kibibytes}k,mode=700`, 'tmpfs', path]);
  if (mounted.status !== 0) {
    rmdirSync(path);
    leaveOut(tested, mounted.error?.message ?? String(mounted.stderr).trim());
    return undefined;
  }
  const filler = join(path, 'filler');
  return {
    path,
    fill: () => fillUp(filler),
    free: () => rmSync(filler, { force: true }),
    remove: () => {
      spawnSync('umount', ['-l', path]);
      rmdirSync(path);
    },
  };
}

function leaveOut(tested: string, why: string): void {
  const line = `${tested} is not tested: no file system may be mounted here (${why})`;
  if (process.env.PROOFGATE_TEST_SKIPS === 'none') throw new Error(line);
  process.stdout.write(`${line}\n`);
}

function fillUp(filler: string): void {
  const descriptor = openSync(filler, 'a');
  try {
    for (;;) writeSync(descriptor, Buffer.alloc(4096));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
  } finally {
    closeSync(descriptor);
  }
}
