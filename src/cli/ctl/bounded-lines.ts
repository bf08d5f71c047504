/** Splits a stream into lines of bounded length, so that memory does not depend on what the stream holds. */
import type { Readable } from 'node:stream';

const LF = 0x0a;

/** Yields undefined for a line of more than `maxBytes`. Empty lines are left out. */
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
