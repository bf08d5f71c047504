/**
 * Reads the bytes of one HTTP/1.1 connection as upstreams do: by the grammar, and in the lenient ways of known servers. Where
 * two readings differ, an upstream may serve another request than the one that was verified.
 * Sources: RFC 9112 sections 2.2, 5, 6 and 7; the leniencies are those of published desync attacks.
 */
import type { HeaderLine } from '../../../src/tools/conformance/wire/exchange.ts';
import { readChunks } from './chunks.ts';

export interface ReadRequest {
  readonly method: string;
  readonly target: string;
  readonly version: string;
  readonly headers: readonly HeaderLine[];
  readonly trailers: readonly HeaderLine[];
  readonly body: Buffer;
  /** False where the bytes end inside its body. */
  readonly isComplete: boolean;
  /** Offset of the byte behind it. */
  readonly endOffset: number;
}

export interface Reading {
  readonly requests: readonly ReadRequest[];
  /** What is not HTTP/1.1 by the grammar; reading stops there. */
  readonly fault?: string;
}

export interface Rules {
  readonly name: string;
  /** Whether departures from the grammar are faults. */
  readonly isStrict: boolean;
  /** What ends a line of the head. */
  readonly lineEnd: RegExp;
  /** Whether any header that resembles `Transfer-Encoding: chunked` counts as one. */
  readonly anyTransferEncoding: boolean;
  /** Which framing counts when a request has both. */
  readonly prefers: 'coding' | 'length';
  /** Which of several lengths counts. */
  readonly length: 'first' | 'last';
}

const LENIENT = { isStrict: false, lineEnd: /\r?\n/, anyTransferEncoding: true, length: 'first' } as const;

export const STRICT: Rules = {
  ...LENIENT,
  name: 'strict',
  isStrict: true,
  lineEnd: /\r\n/,
  prefers: 'coding',
  anyTransferEncoding: false,
};

export const LENIENT_READINGS: readonly Rules[] = [
  { ...LENIENT, name: 'coding first', prefers: 'coding' },
  { ...LENIENT, name: 'length first', prefers: 'length', anyTransferEncoding: false },
  { ...LENIENT, name: 'last length', prefers: 'length', length: 'last', anyTransferEncoding: false },
  { ...LENIENT, name: 'CR ends lines', prefers: 'coding', lineEnd: /\r\n|\n|\r/ },
];

/** @param from offset where the first request begins */
export function readRequests(bytes: Buffer, rules: Rules, from = 0): Reading {
  const requests: ReadRequest[] = [];
  let offset = from;
  while (offset < bytes.length) {
    const found = readRequest(bytes, offset, rules);
    if (found === undefined) break;
    if (typeof found === 'string') return { requests, fault: found };
    requests.push(found);
    if (!found.isComplete) break;
    offset = found.endOffset;
  }
  return { requests };
}

/** Undefined while the head is incomplete; a text says what is wrong with it. */
function readRequest(bytes: Buffer, start: number, rules: Rules): ReadRequest | string | undefined {
  const head = readHead(bytes, start, rules);
  if (head === undefined) return undefined;
  if (rules.isStrict) {
    const fault = headFault(head);
    if (fault !== undefined) return `${fault} in ${JSON.stringify(head.text.slice(0, 400))}`;
  }
  const [method = '', target = '', version = ''] = (head.lines[0] ?? '').split(' ');
  const request = { method, target, version, headers: head.headers };
  const framing = framingOf(head.headers, rules);
  if (framing === 'chunked') {
    const read = readChunks(bytes, head.endOffset, rules.isStrict);
    return typeof read === 'string' ? read : { ...request, ...read };
  }
  const endOffset = head.endOffset + framing;
  return {
    ...request,
    trailers: [],
    body: bytes.subarray(head.endOffset, endOffset),
    isComplete: bytes.length >= endOffset,
    endOffset,
  };
}

interface Head {
  readonly text: string;
  readonly lines: readonly string[];
  readonly headers: readonly HeaderLine[];
  readonly endOffset: number;
}

const MAX_HEAD_BYTES = 262_144;

function readHead(bytes: Buffer, start: number, { lineEnd, isStrict }: Rules): Head | undefined {
  const all = bytes.toString('latin1', start, start + MAX_HEAD_BYTES);
  const lines: string[] = [];
  const nextEnd = new RegExp(lineEnd, 'g');
  let offset = 0;
  for (;;) {
    nextEnd.lastIndex = offset;
    const end = nextEnd.exec(all);
    if (end === null) return undefined;
    const line = all.slice(offset, end.index);
    offset = nextEnd.lastIndex;
    if (line !== '') lines.push(line);
    // Empty lines before a request are skipped (RFC 9112 section 2.2).
    else if (lines.length > 0) break;
    else if (isStrict) lines.push(line);
  }
  return {
    text: all.slice(0, offset),
    lines,
    headers: lines.slice(1).map(splitLine),
    endOffset: start + offset,
  };
}

function splitLine(line: string): HeaderLine {
  const colon = line.indexOf(':');
  return colon < 0 ? [line, ''] : [line.slice(0, colon), line.slice(colon + 1).trim()];
}

const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const REQUEST_LINE = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+ [\x21-\x7e]+ HTTP\/1\.1$/;
const FRAMING_NAMES = new Set(['host', 'content-length', 'transfer-encoding']);

/**
 * Servers are known to trim names and to take `_` for `-`. No known server takes another character for `-` where it looks for
 * framing.
 */
const folded = (name: string): string => name.trim().toLowerCase().replaceAll('_', '-');

function headFault({ lines, headers }: Head): string | undefined {
  const [requestLine = '', ...rest] = lines;
  if (!REQUEST_LINE.test(requestLine)) return 'an odd request line';
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
  if (rest.some((line) => /[\x00-\x08\x0a-\x1f\x7f]/.test(line))) return 'a control character';
  if (headers.some(([name]) => !TOKEN.test(name))) return 'an odd header name';
  const framing = headers.filter(([name]) => FRAMING_NAMES.has(folded(name)));
  const values = (wanted: string) =>
    framing.filter(([name]) => name.toLowerCase() === wanted).map(([, value]) => value);
  const [hosts, lengths, codings] = [values('host'), values('content-length'), values('transfer-encoding')];
  if (hosts.length + lengths.length + codings.length !== framing.length)
    return 'a framing header in disguise';
  if (hosts.length !== 1) return `${hosts.length} Host headers`;
  if (lengths.length + codings.length > 1) return 'two framing headers';
  // Leading zeros are in the grammar (RFC 9110 section 8.6), and no known server takes them for octal.
  if (lengths.some((length) => !/^0*[0-9]{1,15}$/.test(length))) return 'an odd length';
  if (codings.some((coding) => coding !== 'chunked')) return 'an odd transfer coding';
  return undefined;
}

function framingOf(headers: readonly HeaderLine[], rules: Rules): number | 'chunked' {
  const exact = (wanted: string) => headers.filter(([name]) => name.toLowerCase() === wanted);
  const alike = (wanted: string) => headers.filter(([name]) => folded(name) === wanted);
  const codings = rules.anyTransferEncoding
    ? alike('transfer-encoding').filter(([, value]) => /chunked/i.test(value))
    : exact('transfer-encoding').filter(([, value]) => /^chunked$/i.test(value));
  const lengths = alike('content-length');
  const [, length] = (rules.length === 'first' ? lengths[0] : lengths.at(-1)) ?? [];
  const hasCoding = codings.length > 0;
  if (hasCoding && (rules.prefers === 'coding' || length === undefined)) return 'chunked';
  return Math.max(0, Number.parseInt(length?.replace(/[^0-9]*/, '') ?? '0', 10) || 0);
}
