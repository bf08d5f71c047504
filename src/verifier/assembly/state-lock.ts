/** A state directory is of one verifier at a time: a second one would overwrite its mark, its bundle and what it observes. */
import { type DirectoryLock, lockDirectory } from '../../process/files/directory-lock.ts';
import { type CliError, usageError } from '../../process/program/errors.ts';
import type { Logger } from '../../process/telemetry/log.ts';

/**
 * Call it before anything else reads or writes the directory; workers leave it to their primary.
 * @returns what releases it
 * @throws CliError `state_dir_in_use`
 */
export async function lockState(stateDirectory: string, logger: Logger): Promise<() => Promise<void>> {
  const lock = await lockIfPossible(stateDirectory, logger);
  if (lock === undefined) return async () => undefined;
  const isShared = await lock.isHeldByOthers().catch(() => true);
  if (!isShared) return () => lock.release();
  await lock.release();
  throw stateInUse(stateDirectory);
}

export function stateInUse(stateDirectory: string): CliError {
  const text = 'is in use by another verifier: give each process a directory of its own';
  return usageError('state_dir_in_use', `--state-dir ${stateDirectory} ${text}`);
}

/** Serves without a lock on a file system without sockets. Others then cannot see that the directory is in use. */
async function lockIfPossible(stateDirectory: string, logger: Logger): Promise<DirectoryLock | undefined> {
  try {
    return await lockDirectory(stateDirectory);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : 'error';
    logger.warn(
      { code },
      'the state directory cannot be locked: another verifier or bundle reset-mark would not see that it is in use',
    );
    return undefined;
  }
}
