/** A read-only mount of a directory, for tests. Mounting takes privileges: without them there is no mount. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface ReadOnlyView {
  /** Shows what is in the directory now; nothing can be written through it. */
  readonly path: string;
  remove(): void;
}

/** @returns undefined where nothing may be mounted */
export function mountReadOnlyView(directory: string): ReadOnlyView | undefined {
  const path = mkdtempSync(join(tmpdir(), 'proofgate-view-'));
  const mounted = spawnSync('mount', ['-o', 'bind,ro', directory, path]);
  if (mounted.status !== 0) {
    rmdirSync(path);
    return undefined;
  }
  return {
    path,
    remove: () => {
      spawnSync('umount', ['-l', path]);
      rmdirSync(path);
    },
  };
}
