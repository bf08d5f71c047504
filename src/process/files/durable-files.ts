/** Files and links that survive a power loss, and that a concurrent reader sees complete. Errors are those of the system. */
import { randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import { link, lstat, open, readdir, rename, rm, symlink, unlink, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { systemErrorCode } from '../program/errors.ts';

/** 0o600 for secrets; a umask can only narrow it. */
export type FileMode = 0o600 | 0o644;
export type FileContent = string | Uint8Array | AsyncIterable<Uint8Array>;

/**
 * Creates a file (`O_EXCL`, which follows no link) and syncs its content; removes it when that fails. Its name is durable
 * after {@link syncDirectory}.
 */
export async function createSynced(path: string, content: FileContent, mode: FileMode): Promise<void> {
  const handle = await open(path, 'wx', mode);
  try {
    await writeFile(handle, content);
    await handle.sync();
  } catch (error) {
    await unlink(path).catch(() => undefined);
    throw error;
  } finally {
    await handle.close();
  }
}

/** Replaces a file: a temporary file beside it, fsync, rename, fsync of the directory. */
export async function replaceDurably(path: string, content: FileContent, mode: FileMode): Promise<void> {
  const temporary = temporaryPathOf(path);
  await createSynced(temporary, content, mode);
  try {
    await rename(temporary, path);
  } catch (error) {
    await unlink(temporary).catch(() => undefined);
    throw error;
  }
  await syncDirectory(dirname(path));
}

/**
 * Creates a file that no other process sees half written: a hard link publishes it, and never replaces one.
 * @returns false when the path exists
 */
export async function publishDurably(path: string, content: FileContent, mode: FileMode): Promise<boolean> {
  const temporary = temporaryPathOf(path);
  await createSynced(temporary, content, mode);
  try {
    await link(temporary, path);
  } catch (error) {
    if (systemErrorCode(error) === 'EEXIST') return false;
    throw error;
  } finally {
    await unlink(temporary);
  }
  await syncDirectory(dirname(path));
  return true;
}

/**
 * Replaces what is at the path by a symbolic link. It is durable after {@link syncDirectory}.
 * @param temporary path beside it, where an interrupted attempt may have left a link
 */
export async function replaceLink(
  path: string,
  target: string,
  temporary = temporaryPathOf(path),
): Promise<void> {
  await rm(temporary, { force: true });
  await symlink(target, temporary);
  try {
    await rename(temporary, path);
  } catch (error) {
    await unlink(temporary).catch(() => undefined);
    throw error;
  }
}

/** Syncs a directory: without this, a new file's name may be lost in a power loss although its content was synced. */
export async function syncDirectory(directory: string): Promise<void> {
  const handle = await open(directory, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

function temporaryPathOf(path: string): string {
  return join(dirname(path), `.${basename(path)}.${randomBytes(8).toString('hex')}`);
}

/**
 * Removes temporary files of interrupted replacements of a file. Never rejects.
 * @param minAgeMs of a file to remove; without it the directory must have no other writers
 */
export async function removeTemporaries(path: string, minAgeMs?: number): Promise<void> {
  const [directory, prefix] = [dirname(path), `.${basename(path)}.`];
  const names = await readdir(directory).catch(() => []);
  for (const name of names) {
    if (!name.startsWith(prefix) || !/^[0-9a-f]{16}$/.test(name.slice(prefix.length))) continue;
    const file = join(directory, name);
    const stats = await lstat(file).catch(() => undefined);
    const isOld = minAgeMs === undefined || (stats !== undefined && Date.now() - stats.mtimeMs > minAgeMs);
    if (stats?.isFile() === true && isOld) await unlink(file).catch(() => undefined);
  }
}
