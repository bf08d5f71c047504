/** A small file system, to be filled. Mounting takes privileges: whoever has none gets none. */
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

/** @returns undefined where nothing may be mounted */
export function mountSmallDisk(kibibytes = 64): SmallDisk | undefined {
  const path = mkdtempSync(join(tmpdir(), 'proofgate-disk-'));
  const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${kibibytes}k,mode=700`, 'tmpfs', path]);
  if (mounted.status !== 0) {
    rmdirSync(path);
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
