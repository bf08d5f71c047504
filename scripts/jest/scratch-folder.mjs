/** The folder of a test run's temporary files, in memory where there is room: a disk that others use may take seconds for an fsync. */
import { chmodSync, mkdtempSync, readFileSync, rmSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const MEMORY = '/dev/shm';
const NEEDED_BYTES = 4 * 1024 ** 3;

export function scratchFolder() {
  // Short: paths of Unix sockets have 108 bytes at most.
  const folder = mkdtempSync(join(isRoomy() ? MEMORY : tmpdir(), 'pg-'));
  // Servers of other users look for their files below it.
  chmodSync(folder, 0o755);
  return folder;
}

export function removeScratchFolder(folder) {
  rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
}

/** Whether programs may be started from there, and there is room. */
function isRoomy() {
  if (process.env.TMPDIR !== undefined) return false;
  try {
    const mount = readFileSync('/proc/mounts', 'utf8')
      .split('\n')
      .find((line) => line.split(' ')[1] === MEMORY);
    if (mount === undefined || mount.split(' ')[3].split(',').includes('noexec')) return false;
    const { bavail, bsize } = statfsSync(MEMORY);
    return bavail * bsize > NEEDED_BYTES;
  } catch {
    return false;
  }
}
