/** Reads and writes whole files: reads regular files of bounded size, and writes atomically. */
import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { join } from 'node:path';
import { replaceDurably } from '../../process/files/durable-files.ts';
import { systemErrorCode } from '../../process/program/errors.ts';
import { BundleError, bundleError } from './bundle-error.ts';

export interface FileToRead {
  readonly directory: string;
  /** Name without directory, as in errors. */
  readonly file: string;
  readonly maxBytes: number;
}

/**
 * Follows links, and checks the opened file, so that it cannot be swapped in between.
 * @throws BundleError `file_missing`, `file_unreadable`, `file_not_regular`, `file_too_large`
 */
export async function readRegularFile(file: FileToRead): Promise<Buffer> {
  const { handle, sizeBytes } = await openRegularFile(file);
  try {
    return await readBytes(handle, sizeBytes, file.file);
  } finally {
    await handle.close();
  }
}

/** As {@link readRegularFile}, for streaming. The caller closes the handle. */
export async function openRegularFile({
  directory,
  file,
  maxBytes,
}: FileToRead): Promise<{ readonly handle: FileHandle; readonly sizeBytes: number }> {
  // Opening a named pipe without O_NONBLOCK waits for a writer.
  const handle = await open(join(directory, file), constants.O_RDONLY | constants.O_NONBLOCK).catch(
    (error: unknown) => {
      throw fileError(error, file);
    },
  );
  try {
    const stat = await handle.stat();
    if (!stat.isFile()) throw bundleError('file_not_regular', file, '', 'not a regular file');
    if (stat.size > maxBytes) {
      throw bundleError('file_too_large', file, '', `${stat.size} bytes, at most ${maxBytes}`);
    }
    return { handle, sizeBytes: stat.size };
  } catch (error) {
    await handle.close();
    throw fileError(error, file);
  }
}

const CHUNK_BYTES = 256 * 1024;

/** Streams the file from its beginning, at most `maxBytes`. @throws BundleError `file_unreadable`, `file_too_large` */
export async function* readChunks(
  handle: FileHandle,
  file: string,
  maxBytes: number,
): AsyncGenerator<Buffer> {
  for (let position = 0; ; ) {
    const { buffer, bytesRead } = await handle
      .read(Buffer.allocUnsafe(CHUNK_BYTES), 0, CHUNK_BYTES, position)
      .catch((error: unknown) => {
        throw fileError(error, file);
      });
    if (bytesRead === 0) return;
    position += bytesRead;
    if (position > maxBytes) throw bundleError('file_too_large', file, '', `more than ${maxBytes} bytes`);
    yield buffer.subarray(0, bytesRead);
  }
}

async function readBytes(handle: FileHandle, sizeBytes: number, file: string): Promise<Buffer> {
  // One byte more than expected, to detect a file that grows meanwhile.
  const buffer = Buffer.alloc(sizeBytes + 1);
  let filled = 0;
  for (;;) {
    const { bytesRead } = await handle
      .read(buffer, filled, buffer.length - filled, null)
      .catch((error: unknown) => {
        throw fileError(error, file);
      });
    if (bytesRead === 0) break;
    filled += bytesRead;
  }
  if (filled !== sizeBytes) throw bundleError('file_unreadable', file, '', 'changed while being read');
  return buffer.subarray(0, sizeBytes);
}

/** Converts a system error about a file. */
export function fileError(error: unknown, file: string): BundleError {
  if (error instanceof BundleError) return error;
  const code = codeOf(error);
  return code === 'ENOENT' || code === 'ENOTDIR'
    ? bundleError('file_missing', file, '', 'no such file')
    : bundleError('file_unreadable', file, '', `cannot be read: ${code}`);
}

/** Such as `EACCES`. */
function codeOf(error: unknown): string {
  return systemErrorCode(error) ?? 'unknown error';
}

/** Writes a file atomically and durably. @throws BundleError `file_not_written` */
export async function writeFileAtomically(directory: string, file: string, bytes: Uint8Array): Promise<void> {
  await replaceDurably(join(directory, file), bytes, 0o644).catch((error: unknown) => {
    throw fileNotWritten(error, file);
  });
}

export function fileNotWritten(error: unknown, file: string): BundleError {
  return bundleError('file_not_written', file, '', `cannot be written: ${codeOf(error)}`);
}
