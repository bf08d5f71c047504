/** Checks the directory in which a service keeps data that must survive a restart. */
import { constants } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import { systemErrorCode, usageError } from './errors.ts';

/**
 * Does not create the directory: a volume that is not mounted must not look like a new, empty service.
 * @throws CliError `state_dir_unusable`, `data_dir_unusable`
 */
export async function assertStateDirectory(
  path: string,
  flag: 'state-dir' | 'data-dir' = 'state-dir',
): Promise<void> {
  const why = await fault(path);
  if (why !== undefined) throw usageError(`${flag.replace('-', '_')}_unusable`, `--${flag} ${path} ${why}`);
}

async function fault(path: string): Promise<string | undefined> {
  try {
    if (!(await stat(path)).isDirectory()) return 'is not a directory';
    await access(path, constants.R_OK | constants.W_OK | constants.X_OK);
    return undefined;
  } catch (error) {
    const code = systemErrorCode(error) ?? 'error';
    return code === 'ENOENT' ? 'does not exist: create it first' : `cannot be used (${code})`;
  }
}
