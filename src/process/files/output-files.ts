/** Writes files durably: new files that must not exist yet, and atomic replacements. */
import { randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import { access, type FileHandle, lstat, open, readdir, rename, unlink } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { type CliError, systemErrorCode, usageError } from '../program/errors.ts';

export interface FileToWrite {
  readonly path: string;
  readonly content: string | Uint8Array;
  /** 0o600 for secrets; a umask can only narrow it. */
  readonly mode: 0o600 | 0o644;
}

/**
 * Creates a file (`O_EXCL`, which follows no link) and syncs it to disk; removes it when that fails.
 * @throws CliError `file_exists`, `file_not_written`
 */
export async function writeNewFile(file: FileToWrite): Promise<void> {
  let handle: FileHandle;
  try {
    handle = await open(file.path, 'wx', file.mode);
  } catch (error) {
    throw writeError(error, file.path);
  }
  try {
    await handle.writeFile(file.content);
    await handle.sync();
    await syncDirectory(dirname(file.path));
  } catch (error) {
    await unlink(file.path);
    throw writeError(error, file.path);
  } finally {
    await handle.close();
  }
}

/**
 * Replaces a file atomically: a concurrent reader sees the complete old or new content. Rejects a path that exists and is
 * not a regular file, such as `/dev/stdout`.
 * @throws CliError `file_is_directory`, `file_not_regular`, `file_not_written`
 */
export async function replaceFile(file: FileToWrite): Promise<void> {
  await refuseUnlessRegular(file.path);
  const temporary = join(dirname(file.path), `.${basename(file.path)}.${randomBytes(8).toString('hex')}`);
  try {
    await writeNewFile({ ...file, path: temporary });
  } catch {
    throw usageError('file_not_written', `${dirname(file.path)} cannot be written to`);
  }
  try {
    await rename(temporary, file.path);
  } catch (error) {
    await unlink(temporary);
    throw writeError(error, file.path);
  }
  await removeAbandoned(file.path);
  try {
    await syncDirectory(dirname(file.path));
  } catch (error) {
    throw writeError(error, file.path);
  }
}

/** A replacement takes milliseconds; another process may be in one now. */
const ABANDONED_MS = 10 * 60_000;

/** Removes temporary files of processes that were killed. Never rejects: the file itself is in place. */
async function removeAbandoned(path: string): Promise<void> {
  const [directory, prefix] = [dirname(path), `.${basename(path)}.`];
  const names = await readdir(directory).catch(() => []);
  for (const name of names) {
    if (!name.startsWith(prefix) || !/^[0-9a-f]{16}$/.test(name.slice(prefix.length))) continue;
    const file = join(directory, name);
    const stats = await lstat(file).catch(() => undefined);
    const isAbandoned = stats?.isFile() === true && Date.now() - stats.mtimeMs > ABANDONED_MS;
    if (isAbandoned) await unlink(file).catch(() => undefined);
  }
}

/** Checks before something that cannot be repeated that {@link replaceFile} is likely to succeed. @throws CliError as it */
export async function requireReplaceable(path: string): Promise<void> {
  await refuseUnlessRegular(path);
  try {
    await access(dirname(path), constants.W_OK | constants.X_OK);
  } catch {
    throw usageError('file_not_written', `${dirname(path)} cannot be written to`);
  }
}

/** Syncs a directory: without this, a new file's name may be lost in a power cut although its content was synced. */
export async function syncDirectory(directory: string): Promise<void> {
  const handle = await open(directory, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function refuseUnlessRegular(path: string): Promise<void> {
  try {
    const stats = await lstat(path);
    if (stats.isDirectory()) throw usageError('file_is_directory', `${path} is a directory`);
    if (!stats.isFile()) throw usageError('file_not_regular', `${path} is there and not a regular file`);
  } catch (error) {
    const code = systemErrorCode(error);
    if (code === 'ENOENT') return;
    throw code?.startsWith('E') ? writeError(error, path) : error;
  }
}

function writeError(error: unknown, path: string): CliError {
  switch (systemErrorCode(error)) {
    case 'EEXIST':
      return usageError('file_exists', `${path} is there already and is not overwritten: name another file`);
    default:
      return usageError(
        'file_not_written',
        `${path} cannot be written (${systemErrorCode(error) ?? 'unknown'})`,
      );
  }
}

/** Removes a file that {@link writeNewFile} created. */
export async function removeFile(path: string): Promise<void> {
  await unlink(path);
}
