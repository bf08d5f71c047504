/** The folder of a test run's temporary files, which is removed after the run with everything in it. */
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export function scratchFolder() {
  // Short: paths of Unix sockets have 108 bytes at most.
  const folder = mkdtempSync(join(tmpdir(), 'pg-'));
  // Servers of other users look for their files below it.
  chmodSync(folder, 0o755);
  return folder;
}

export function removeScratchFolder(folder) {
  rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
}
