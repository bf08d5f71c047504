/** Reads input files of commands: regular files of bounded size, and standard input. */
import { constants } from 'node:fs';
import { access, type FileHandle, open, stat } from 'node:fs/promises';
import { type CliError, systemErrorCode, usageError } from '../program/errors.ts';
import { checkedCaPem } from './ca-certificates.ts';

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

/**
 * Opens a regular file of any size, to be read in parts. The caller closes it.
 * @throws CliError as {@link readInputBytes}
 */
export async function openInputFile(path: string): Promise<FileHandle> {
  const handle = await openForReading(path);
  try {
    await checkOpenFile(handle, path, { maxBytes: Number.POSITIVE_INFINITY, secret: false });
    return handle;
  } catch (error) {
    await handle.close();
    throw error;
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true });

/** @throws CliError as {@link readInputBytes}, or `file_not_text` */
export async function readInputText(path: string, maxBytes: number): Promise<string> {
  return textOf(await readInputBytes(path, { maxBytes, secret: false }), path);
}

/** Reads a file, or standard input for `-`. @throws CliError as {@link readInputText}, or `input_too_large` */
export async function readFileOrInput(path: string, maxBytes: number): Promise<string> {
  if (path !== '-') return readInputText(path, maxBytes);
  return textOf(await readStandardInput(maxBytes), 'standard input');
}

function textOf(bytes: Buffer, name: string): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw usageError('file_not_text', `${name} is not UTF-8 text`);
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

/**
 * Returns the file's text; undefined when no file is configured. Validates the certificates, because Node silently accepts
 * a file without any and then trusts no server.
 * @throws CliError `ca_invalid`, or as `readInputText`
 */
export async function readCaFile(path: string | undefined): Promise<string | undefined> {
  const pem = await readPemFile(path);
  if (pem === undefined) return undefined;
  try {
    return checkedCaPem(pem);
  } catch {
    throw usageError('ca_invalid', `${path} holds no certificate in PEM, or one that cannot be read`);
  }
}

/**
 * Does not create the directory: a volume that is not mounted must not look like a new, empty service.
 * @throws CliError `state_dir_unusable`, `data_dir_unusable`, `capture_denied_unusable`
 */
export async function assertStateDirectory(
  path: string,
  flag: 'state-dir' | 'data-dir' | 'capture-denied' = 'state-dir',
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
