/**
 * An append-only file of the deltas and links after a base, which may be many thousands. Each line is one JWS in JSON,
 * synced before it is used. A last line without its line feed was interrupted by a power loss and is dropped.
 * Source: docs/design/bundle.md "The state directory".
 */
import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { join } from 'node:path';
import { bundleError } from './bundle-error.ts';
import { DOCUMENTS } from './documents.ts';
import { fileError, fileNotWritten, openRegularFile, readChunks } from './files.ts';

const MAX_DELTA_BYTES = DOCUMENTS.delta.maxBytes;
export const STEP_LOG_FILE = 'steps.jsonl';

const LINE_FEED = 0x0a;
const SCAN_BYTES = 1024 * 1024;

export class StepLog {
  readonly #handle: FileHandle;
  /** Offset after each line. */
  readonly #ends: number[];
  /** Whether bytes may follow the last valid line. */
  #hasTail: boolean;

  private constructor(handle: FileHandle, ends: number[], hasTail: boolean) {
    this.#handle = handle;
    this.#ends = ends;
    this.#hasTail = hasTail;
  }

  /**
   * Creates the file when it is missing. Reads only to find the ends of lines.
   * @throws BundleError `file_unreadable`
   */
  static async open(directory: string): Promise<StepLog> {
    const flags = constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW;
    const handle = await open(join(directory, STEP_LOG_FILE), flags, 0o644).catch((error: unknown) => {
      throw fileError(error, STEP_LOG_FILE);
    });
    try {
      const { ends, sizeBytes } = await findLines(handle);
      return new StepLog(handle, ends, (ends.at(-1) ?? 0) !== sizeBytes);
    } catch (error) {
      await handle.close();
      throw fileError(error, STEP_LOG_FILE);
    }
  }

  get count(): number {
    return this.#ends.length;
  }

  get sizeBytes(): number {
    return this.#ends.at(-1) ?? 0;
  }

  /** One line, without its line feed. @throws BundleError `file_too_large`, `file_unreadable` */
  async read(index: number): Promise<Buffer> {
    const start = this.#ends[index - 1] ?? 0;
    const length = (this.#ends[index] ?? start) - start - 1;
    if (length < 0) throw bundleError('file_unreadable', STEP_LOG_FILE, `/${index}`, 'no such line');
    if (length > MAX_DELTA_BYTES) {
      const text = `${length} bytes, at most ${MAX_DELTA_BYTES}`;
      throw bundleError('file_too_large', STEP_LOG_FILE, `/${index}`, text);
    }
    const { bytesRead, buffer } = await this.#handle
      .read(Buffer.alloc(length), 0, length, start)
      .catch((error: unknown) => {
        throw fileError(error, STEP_LOG_FILE);
      });
    return buffer.subarray(0, bytesRead);
  }

  /**
   * Returns when all documents are on disk; when it fails, none of them counts.
   * @throws BundleError `file_not_written`
   */
  async append(documents: readonly Buffer[]): Promise<void> {
    if (documents.length === 0) return;
    const lines = documents.map(asLine);
    const start = this.sizeBytes;
    try {
      if (this.#hasTail) await this.#handle.truncate(start);
      this.#hasTail = true;
      await writeAll(this.#handle, Buffer.concat(lines), start);
      await this.#handle.datasync();
    } catch (error) {
      throw fileNotWritten(error, STEP_LOG_FILE);
    }
    this.#hasTail = false;
    for (const line of lines) this.#ends.push(this.sizeBytes + line.length);
  }

  /** Keeps only the first lines. @throws BundleError `file_not_written` */
  async truncate(count: number): Promise<void> {
    if (count >= this.#ends.length && !this.#hasTail) return;
    this.#ends.length = Math.min(count, this.#ends.length);
    this.#hasTail = true;
    try {
      await this.#handle.truncate(this.sizeBytes);
      await this.#handle.datasync();
    } catch (error) {
      throw fileNotWritten(error, STEP_LOG_FILE);
    }
    this.#hasTail = false;
  }

  async close(): Promise<void> {
    await this.#handle.close();
  }
}

/** A document may contain line breaks; between members of its JSON a space is equivalent. */
function asLine(document: Buffer): Buffer {
  const text = document
    .toString('utf8')
    .trimEnd()
    .replaceAll(/[\r\n]/g, ' ');
  return Buffer.from(`${text}\n`);
}

async function writeAll(handle: FileHandle, bytes: Buffer, position: number): Promise<void> {
  for (let written = 0; written < bytes.length; ) {
    const { bytesWritten } = await handle.write(bytes, written, bytes.length - written, position + written);
    written += bytesWritten;
  }
}

async function findLines(handle: FileHandle): Promise<{ ends: number[]; sizeBytes: number }> {
  const ends: number[] = [];
  const buffer = Buffer.alloc(SCAN_BYTES);
  for (let position = 0; ; ) {
    const { bytesRead } = await handle.read(buffer, 0, SCAN_BYTES, position);
    if (bytesRead === 0) return { ends, sizeBytes: position };
    const chunk = buffer.subarray(0, bytesRead);
    for (let at = chunk.indexOf(LINE_FEED); at !== -1; at = chunk.indexOf(LINE_FEED, at + 1)) {
      ends.push(position + at + 1);
    }
    position += bytesRead;
  }
}

/** Maximum size of a log that another process reads. */
const MAX_LOG_BYTES = 1024 * 1024 * 1024;

/**
 * Reads the complete lines of a log that another process may be writing to.
 * @throws BundleError `file_missing`, `file_unreadable`, `file_not_regular`, `file_too_large`
 */
export async function* readStepLog(directory: string): AsyncGenerator<Buffer> {
  const { handle } = await openRegularFile({ directory, file: STEP_LOG_FILE, maxBytes: MAX_LOG_BYTES });
  try {
    let rest: Buffer = Buffer.alloc(0);
    for await (const chunk of readChunks(handle, STEP_LOG_FILE, MAX_LOG_BYTES)) {
      rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
      let start = 0;
      for (let end = rest.indexOf(LINE_FEED); end !== -1; end = rest.indexOf(LINE_FEED, start)) {
        yield rest.subarray(start, end);
        start = end + 1;
      }
      rest = rest.subarray(start);
      if (rest.length > MAX_DELTA_BYTES) {
        throw bundleError(
          'file_too_large',
          STEP_LOG_FILE,
          '',
          `a line of more than ${MAX_DELTA_BYTES} bytes`,
        );
      }
    }
  } finally {
    await handle.close();
  }
}
