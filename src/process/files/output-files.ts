/** Writes files durably: new files that must not exist yet, and atomic replacements. */
import { constants } from 'node:fs';
import { access, lstat, unlink } from 'node:fs/promises';
import { dirname } from 'node:path';
import { type CliError, systemErrorCode, usageError } from '../program/errors.ts';
import {
  createSynced,
  type FileContent,
  type FileMode,
  removeTemporaries,
  replaceDurably,
  syncDirectory,
} from './durable-files.ts';

export interface FileToWrite {
  readonly path: string;
  readonly content: FileContent;
  readonly mode: FileMode;
}

/**
 * Creates a file and syncs it to disk; removes it when that fails.
 * @throws CliError `file_exists`, `file_not_written`
 */
export async function writeNewFile({ content, mode, path }: FileToWrite): Promise<void> {
  try {
    await createSynced(path, content, mode);
    await syncDirectory(dirname(path)).catch(async (error: unknown) => {
      await unlink(path);
      throw error;
    });
  } catch (error) {
    throw writeError(error, path);
  }
}

/** A replacement takes milliseconds; another process may be in one now. */
const ABANDONED_MS = 10 * 60_000;

/**
 * Replaces a file atomically: a concurrent reader sees the complete old or new content. Rejects a path that exists and is
 * not a regular file, such as `/dev/stdout`.
 * @throws CliError `file_is_directory`, `file_not_regular`, `file_not_written`
 */
export async function replaceFile({ content, mode, path }: FileToWrite): Promise<void> {
  await refuseUnlessRegular(path);
  try {
    await replaceDurably(path, content, mode);
  } catch {
    throw usageError('file_not_written', `${dirname(path)} cannot be written to`);
  }
  await removeTemporaries(path, ABANDONED_MS);
}

/**
 * Checks that {@link replaceFile} is likely to succeed, before an action that cannot be repeated.
 * @throws CliError as {@link replaceFile}
 */
export async function requireReplaceable(path: string): Promise<void> {
  await refuseUnlessRegular(path);
  try {
    await access(dirname(path), constants.W_OK | constants.X_OK);
  } catch {
    throw usageError('file_not_written', `${dirname(path)} cannot be written to`);
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
