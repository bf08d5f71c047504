/** Parses one HTTP/1.1 response from bytes as they arrive. It is strict: a malformed response is an error. */
import { type HeaderLine, NotHttp, type WireResponse } from './exchange.ts';

const endOfHead = Buffer.from('\r\n\r\n');

interface Head {
  readonly status: number;
  readonly headers: readonly HeaderLine[];
  readonly lengthBytes: number;
}

interface Body {
  readonly bytes: Buffer;
  readonly endOffset: number;
}

/** A response and how many bytes it took. */
export interface ReadResponse {
  readonly response: WireResponse;
  readonly lengthBytes: number;
}

/**
 * `undefined` while the response is incomplete. `ended` means that no more bytes will come, which completes a body without a
 * length. Interim (1xx) responses are skipped.
 */
export function readResponse(bytes: Buffer, method: string, ended: boolean): ReadResponse | undefined {
  let start = 0;
  let head = readHead(bytes, start);
  while (head !== undefined && head.status >= 100 && head.status < 200) {
    start += head.lengthBytes;
    head = readHead(bytes, start);
  }
  if (head === undefined) return undefined;
  const body = readBody(bytes, start + head.lengthBytes, head, method, ended);
  if (body === undefined) return undefined;
  return {
    response: { status: head.status, headers: head.headers, body: body.bytes },
    lengthBytes: body.endOffset,
  };
}

function readHead(bytes: Buffer, start: number): Head | undefined {
  const end = bytes.indexOf(endOfHead, start);
  if (end < 0) return undefined;
  const [statusLine = '', ...lines] = bytes.toString('latin1', start, end).split('\r\n');
  const status = /^HTTP\/1\.[01] ([1-5][0-9][0-9])(?: |$)/.exec(statusLine)?.[1];
  if (status === undefined) throw new NotHttp(`not an HTTP/1.1 response: ${JSON.stringify(statusLine)}`);
  return {
    status: Number(status),
    headers: lines.map(readLine),
    lengthBytes: end + endOfHead.length - start,
  };
}

function readLine(line: string): HeaderLine {
  const colon = line.indexOf(':');
  if (colon < 1) throw new NotHttp(`not a header line: ${JSON.stringify(line)}`);
  return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
}

function readBody(
  bytes: Buffer,
  start: number,
  head: Head,
  method: string,
  ended: boolean,
): Body | undefined {
  if (method === 'HEAD' || head.status === 204 || head.status === 304) {
    return { bytes: Buffer.alloc(0), endOffset: start };
  }
  const find = (name: string) => head.headers.find(([key]) => key === name)?.[1];
  if (find('transfer-encoding')?.toLowerCase() === 'chunked') return readChunks(bytes, start);
  const announced = find('content-length');
  if (announced === undefined) {
    return ended ? { bytes: bytes.subarray(start), endOffset: bytes.length } : undefined;
  }
  const endOffset = start + Number(announced);
  return bytes.length < endOffset ? undefined : { bytes: bytes.subarray(start, endOffset), endOffset };
}

function readChunks(bytes: Buffer, start: number): Body | undefined {
  const chunks: Buffer[] = [];
  let offset = start;
  for (;;) {
    const lineEnd = bytes.indexOf('\r\n', offset);
    if (lineEnd < 0) return undefined;
    const sizeBytes = Number.parseInt(bytes.toString('latin1', offset, lineEnd), 16);
    if (!Number.isSafeInteger(sizeBytes)) throw new NotHttp('not a chunk size');
    const dataStart = lineEnd + 2;
    if (sizeBytes === 0) {
      // Trailers, if any, end with an empty line; without them the empty line follows at once.
      const end = bytes.indexOf(endOfHead, lineEnd);
      return end < 0 ? undefined : { bytes: Buffer.concat(chunks), endOffset: end + endOfHead.length };
    }
    if (bytes.length < dataStart + sizeBytes + 2) return undefined;
    chunks.push(bytes.subarray(dataStart, dataStart + sizeBytes));
    offset = dataStart + sizeBytes + 2;
  }
}
