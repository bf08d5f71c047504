/** Reads audit files line by line. Memory does not depend on what they contain. */
import { pipeline, type Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { openInputFile } from '../../process/files/input-files.ts';
import { CliError, usageError } from '../../process/program/errors.ts';

/** Far more than an event has. */
export const MAX_LINE_BYTES = 1024 * 1024;
const CHUNK_BYTES = 1024 * 1024;

/**
 * Yields the lines of all files. Skips empty lines. Yields undefined for a line of more than {@link MAX_LINE_BYTES}.
 * @param paths `-` is standard input
 * @throws CliError `audit_file_damaged`, and those of files
 */
export async function* auditLines(paths: readonly string[]): AsyncGenerator<string | undefined, void> {
  for (const path of paths) {
    const chunks = path === '-' ? process.stdin : await openAuditFile(path);
    try {
      yield* boundedLines(chunks, MAX_LINE_BYTES);
    } catch (error) {
      if (error instanceof CliError) throw error;
      const text = `${path} cannot be read to its end: leave it out, or restore it`;
      throw usageError('audit_file_damaged', text);
    }
  }
}

/** Unpacks a file whose name ends in `.gz`. @throws CliError as of files */
export async function openAuditFile(path: string): Promise<Readable> {
  const handle = await openInputFile(path);
  const bytes = handle.createReadStream({ highWaterMark: CHUNK_BYTES });
  if (!path.endsWith('.gz')) return bytes;
  // An error reaches the reader of the result.
  return pipeline(bytes, createGunzip({ chunkSize: CHUNK_BYTES }), () => undefined);
}

const LF = 0x0a;

/** Skips empty lines. Yields undefined for a line of more than `maxBytes`. */
export async function* boundedLines(
  chunks: Readable,
  maxBytes: number,
): AsyncGenerator<string | undefined, void> {
  let parts: Buffer[] = [];
  let length = 0;
  for await (const chunk of chunks) {
    const bytes = Buffer.from(chunk);
    let start = 0;
    for (let end = bytes.indexOf(LF); end !== -1; end = bytes.indexOf(LF, start)) {
      const line = bytes.subarray(start, end);
      start = end + 1;
      length += line.byteLength;
      if (length > maxBytes) yield undefined;
      else if (length > 0)
        yield parts.length === 0 ? line.toString() : Buffer.concat([...parts, line]).toString();
      parts = [];
      length = 0;
    }
    const rest = bytes.subarray(start);
    length += rest.byteLength;
    if (length > maxBytes) parts = [];
    else if (rest.byteLength > 0) parts.push(rest);
  }
  if (length > maxBytes) yield undefined;
  else if (length > 0) yield Buffer.concat(parts).toString();
}
