/** Reads a chunked body (RFC 9112 section 7.1): by the grammar, or as lenient servers do. */
import type { HeaderLine } from '../../../src/tools/conformance/wire/exchange.ts';

export interface ReadChunks {
  readonly body: Buffer;
  readonly trailers: readonly HeaderLine[];
  readonly isComplete: boolean;
  readonly endOffset: number;
}

/** @returns a text that says what is wrong, if `isStrict` */
export function readChunks(bytes: Buffer, start: number, isStrict: boolean): ReadChunks | string {
  const chunks: Buffer[] = [];
  let offset = start;
  for (;;) {
    const size = lineAt(bytes, offset, isStrict);
    if (size === undefined) return incomplete(bytes, chunks);
    if (isStrict && !/^[0-9A-Fa-f]{1,13}$/.test(size.text))
      return `a chunk line ${JSON.stringify(size.text)}`;
    const sizeBytes = Number.parseInt(size.text, 16) || 0;
    offset = size.endOffset;
    if (sizeBytes === 0) return readTrailers(bytes, offset, chunks, isStrict);
    if (bytes.length < offset + sizeBytes + 2) return incomplete(bytes, chunks);
    chunks.push(bytes.subarray(offset, offset + sizeBytes));
    offset += sizeBytes;
    const end = bytes.toString('latin1', offset, offset + 2);
    if (isStrict && end !== '\r\n') return `a chunk that ends with ${JSON.stringify(end)}`;
    // RFC 9112 section 2.2 lets a server take LF alone for an end of line.
    offset += end.startsWith('\n') ? 1 : 2;
  }
}

function incomplete(bytes: Buffer, chunks: readonly Buffer[]): ReadChunks {
  return { body: Buffer.concat(chunks), trailers: [], isComplete: false, endOffset: bytes.length };
}

function readTrailers(
  bytes: Buffer,
  start: number,
  chunks: readonly Buffer[],
  isStrict: boolean,
): ReadChunks | string {
  const trailers: HeaderLine[] = [];
  let offset = start;
  for (;;) {
    const line = lineAt(bytes, offset, isStrict);
    if (line === undefined) return incomplete(bytes, chunks);
    offset = line.endOffset;
    if (line.text === '') {
      return { body: Buffer.concat(chunks), trailers, isComplete: true, endOffset: offset };
    }
    const colon = line.text.indexOf(':');
    if (isStrict && colon < 1) return `a trailer ${JSON.stringify(line.text)}`;
    trailers.push([line.text.slice(0, colon), line.text.slice(colon + 1).trim()]);
  }
}

function lineAt(bytes: Buffer, start: number, isStrict: boolean) {
  const end = bytes.indexOf(isStrict ? '\r\n' : '\n', start);
  if (end < 0) return undefined;
  const text = bytes.toString('latin1', start, end);
  return isStrict
    ? { text, endOffset: end + 2 }
    : { text: text.endsWith('\r') ? text.slice(0, -1) : text, endOffset: end + 1 };
}
