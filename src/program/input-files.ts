/** Reads input files of commands: regular files of bounded size, and standard input. */

import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { type CliError, systemErrorCode, usageError } from './errors.ts';

export interface InputFileRule {
  readonly maxBytes: number;
  /** Rejects a file that its group or others can access. */
  readonly secret: boolean;
}

/**
 * Opens the file first and checks the open descriptor, so that the file cannot be swapped in between. Follows symbolic
 * links, because mounted secrets are links.
 * @throws CliError `file_not_found`, `file_is_directory`, `file_not_regular`, `file_unreadable`,
 *   `file_too_large`, `file_permissions`
 */
export async function readInputBytes(path: string, rule: InputFileRule): Promise<Buffer> {
  const handle = await openForReading(path);
  try {
    await checkOpenFile(handle, path, rule);
    return await readBounded(handle, path, rule.maxBytes);
  } finally {
    await handle.close();
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true });

/** @throws CliError as {@link readInputBytes}, or `file_not_text` */
export async function readInputText(path: string, maxBytes: number): Promise<string> {
  const bytes = await readInputBytes(path, { maxBytes, secret: false });
  try {
    return utf8.decode(bytes);
  } catch {
    throw usageError('file_not_text', `${path} is not UTF-8 text`);
  }
}

const MAX_PEM_BYTES = 4 * 1024 * 1024;

/** The text of a PEM file, not validated; undefined when no file is configured. @throws CliError as {@link readInputText} */
export async function readPemFile(path: string | undefined): Promise<string | undefined> {
  return path === undefined ? undefined : readInputText(path, MAX_PEM_BYTES);
}

async function openForReading(path: string): Promise<FileHandle> {
  try {
    // Without O_NONBLOCK, opening a FIFO would wait for a writer.
    return await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    throw fileError(error, path);
  }
}

async function checkOpenFile(handle: FileHandle, path: string, rule: InputFileRule): Promise<void> {
  const stats = await handle.stat();
  if (stats.isDirectory()) throw usageError('file_is_directory', `${path} is a directory`);
  if (!stats.isFile()) throw usageError('file_not_regular', `${path} is not a regular file`);
  if (rule.secret && (stats.mode & 0o077) !== 0) {
    const mode = (stats.mode & 0o777).toString(8).padStart(4, '0');
    throw usageError(
      'file_permissions',
      `${path} has mode ${mode}: only its owner may have access (chmod 600)`,
    );
  }
  if (stats.size > rule.maxBytes) throw tooLarge(path, rule.maxBytes);
}

/** Checks the size again, because the file may have grown after the first check. */
async function readBounded(handle: FileHandle, path: string, maxBytes: number): Promise<Buffer> {
  try {
    const bytes = await handle.readFile();
    if (bytes.byteLength > maxBytes) throw tooLarge(path, maxBytes);
    return bytes;
  } catch (error) {
    throw systemErrorCode(error)?.startsWith('E') ? fileError(error, path) : error;
  }
}

function tooLarge(path: string, maxBytes: number): CliError {
  return usageError('file_too_large', `${path} is larger than ${maxBytes} bytes`);
}

function fileError(error: unknown, path: string): CliError {
  switch (systemErrorCode(error)) {
    case 'ENOENT':
    case 'ENOTDIR':
      return usageError('file_not_found', `${path} does not exist`);
    case 'EISDIR':
      return usageError('file_is_directory', `${path} is a directory`);
    default:
      return usageError('file_unreadable', `${path} cannot be read (${systemErrorCode(error) ?? 'unknown'})`);
  }
}

/**
 * Reads all of standard input, at most `maxBytes`.
 * @throws CliError `input_too_large`
 */
export async function readStandardInput(maxBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let byteLength = 0;
  for await (const chunk of process.stdin) {
    const bytes = Buffer.from(chunk);
    byteLength += bytes.byteLength;
    if (byteLength > maxBytes)
      throw usageError('input_too_large', `standard input is larger than ${maxBytes} bytes`);
    chunks.push(bytes);
  }
  return Buffer.concat(chunks);
}
