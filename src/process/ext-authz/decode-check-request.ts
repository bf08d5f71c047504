/**
 * Decodes from a CheckRequest only the fields that a decision needs, each once, straight from the wire. A decoder for
 * whole messages allocates objects for every field, and then the objects that the caller asked for. Field numbers are
 * those of `proto/`; protobufjs reads the wire format.
 */
import protobuf from 'protobufjs/minimal.js';
import type { CheckRequest, HeaderValue, HttpRequest } from './request-messages.ts';

type Reader = protobuf.Reader;

/** Protocol Buffers encoding, "Message Structure": strings, bytes and messages are length-delimited. */
const LENGTH_DELIMITED = 2;
const tagOf = (field: number): number => (field << 3) | LENGTH_DELIMITED;

const ATTRIBUTES = tagOf(1);
const REQUEST = tagOf(4);
const HTTP = tagOf(2);

const METHOD = tagOf(2);
const HEADERS_ENTRY = tagOf(3);
const PATH = tagOf(4);
const HOST = tagOf(5);
const SCHEME = tagOf(6);
const QUERY = tagOf(7);
const FRAGMENT = tagOf(8);
const BODY = tagOf(11);
const RAW_BODY = tagOf(12);
const HEADER_MAP = tagOf(13);

const HEADER_MAP_LINE = tagOf(1);
const KEY = tagOf(1);
const VALUE = tagOf(2);
const RAW_VALUE = tagOf(3);

/** Envoy's defaults are 100 lines and 60 KiB of headers. */
export const HEADER_LIMITS = { maxLines: 1_000, maxBytes: 256 * 1024 } as const;

type Writable<T> = { -readonly [K in keyof T]: T[K] };

/**
 * Buffers of the result are views of `bytes`; bytes of headers become text, one character each.
 * @throws Error when the bytes are not a CheckRequest, or contain a message twice, of which another reader might use
 * the other one
 */
export function decodeCheckRequest(bytes: Uint8Array): CheckRequest {
  const reader = protobuf.Reader.create(bufferOf(bytes));
  let request: CheckRequest['attributes'];
  readFields(reader, reader.len, (tag) => {
    if (tag !== ATTRIBUTES) return false;
    refuseSecond(request);
    request = readAttributes(reader);
    return true;
  });
  return request === undefined ? {} : { attributes: request };
}

function readAttributes(reader: Reader): NonNullable<CheckRequest['attributes']> {
  let request: { http?: HttpRequest } | undefined;
  readMessage(reader, (tag) => {
    if (tag !== REQUEST) return false;
    refuseSecond(request);
    request = readRequest(reader);
    return true;
  });
  return request === undefined ? {} : { request };
}

function readRequest(reader: Reader): { http?: HttpRequest } {
  let http: HttpRequest | undefined;
  readMessage(reader, (tag) => {
    if (tag !== HTTP) return false;
    refuseSecond(http);
    http = readHttpRequest(reader);
    return true;
  });
  return http === undefined ? {} : { http };
}

type MergedHeaders = { [name: string]: string };
type HttpRequestInMaking = Omit<Writable<HttpRequest>, 'headers'> & { headers?: MergedHeaders };

// The readers below are plain loops: decoding a check spends nearly all its time here, and a closure a message is
// costly.
function readHttpRequest(reader: Reader): HttpRequest {
  const http: HttpRequestInMaking = {};
  const merged = { lines: 0, bytes: 0 };
  const end = endOfMessage(reader);
  while (reader.pos < end) readHttpField(reader, http, merged);
  assertEndedAt(reader, end);
  return http;
}

function readHttpField(reader: Reader, http: HttpRequestInMaking, merged: HeaderCount): void {
  const tag = reader.uint32();
  switch (tag) {
    case METHOD:
      http.method = reader.string();
      break;
    case HEADERS_ENTRY:
      // The caller chooses the names, which may include `__proto__`.
      http.headers ??= Object.create(null) as MergedHeaders;
      readMergedHeader(reader, http.headers, merged);
      break;
    case PATH:
      http.path = reader.string();
      break;
    case HOST:
      http.host = reader.string();
      break;
    case SCHEME:
      http.scheme = reader.string();
      break;
    case QUERY:
      http.query = reader.string();
      break;
    case FRAGMENT:
      http.fragment = reader.string();
      break;
    case BODY:
      http.body = readBytes(reader);
      break;
    case RAW_BODY:
      http.raw_body = readBytes(reader);
      break;
    case HEADER_MAP:
      refuseSecond(http.header_map);
      http.header_map = { headers: readHeaderLines(reader) };
      break;
    default:
      reader.skipType(tag & 7);
  }
}

interface HeaderCount {
  lines: number;
  bytes: number;
}

function readMergedHeader(reader: Reader, headers: MergedHeaders, count: HeaderCount): void {
  let name = '';
  let value = '';
  const end = endOfMessage(reader);
  count.lines += 1;
  count.bytes += end - reader.pos;
  if (count.lines > HEADER_LIMITS.maxLines) throw new RangeError('too many header lines');
  if (count.bytes > HEADER_LIMITS.maxBytes) throw new RangeError('headers are too long');
  while (reader.pos < end) {
    const tag = reader.uint32();
    if (tag === KEY) name = reader.string();
    else if (tag === VALUE) value = reader.string();
    else reader.skipType(tag & 7);
  }
  assertEndedAt(reader, end);
  headers[name] = value;
}

function readHeaderLines(reader: Reader): readonly HeaderValue[] {
  const lines: HeaderValue[] = [];
  const end = endOfMessage(reader);
  if (end - reader.pos > HEADER_LIMITS.maxBytes) throw new RangeError('headers are too long');
  while (reader.pos < end) {
    const tag = reader.uint32();
    if (tag !== HEADER_MAP_LINE) {
      reader.skipType(tag & 7);
      continue;
    }
    if (lines.length >= HEADER_LIMITS.maxLines) throw new RangeError('too many header lines');
    lines.push(readHeaderLine(reader));
  }
  assertEndedAt(reader, end);
  return lines;
}

function readHeaderLine(reader: Reader): HeaderValue {
  const line: Writable<HeaderValue> = { key: '' };
  const end = endOfMessage(reader);
  while (reader.pos < end) {
    const tag = reader.uint32();
    if (tag === KEY) line.key = reader.string();
    else if (tag === RAW_VALUE) line.raw_text = readLatin1(reader);
    else if (tag === VALUE) line.value = reader.string();
    else reader.skipType(tag & 7);
  }
  assertEndedAt(reader, end);
  return line;
}

/** @param read reads the field's value when it knows the tag; false skips the field */
function readMessage(reader: Reader, read: (tag: number) => boolean): void {
  readFields(reader, endOfMessage(reader), read);
}

function readFields(reader: Reader, end: number, read: (tag: number) => boolean): void {
  while (reader.pos < end) {
    const tag = reader.uint32();
    if (!read(tag)) reader.skipType(tag & 7);
  }
  assertEndedAt(reader, end);
}

function endOfMessage(reader: Reader): number {
  const length = reader.uint32();
  return reader.pos + length;
}

/** Rejects a field that continues beyond the end of its message. */
function assertEndedAt(reader: Reader, end: number): void {
  if (reader.pos !== end) throw new RangeError('a field crosses the end of its message');
}

function refuseSecond(first: object | undefined): void {
  if (first !== undefined) throw new RangeError('a message is there twice');
}

function readBytes(reader: Reader): Buffer {
  return bufferOf(reader.bytes());
}

function readLatin1(reader: Reader): string {
  const length = reader.uint32();
  const start = reader.pos;
  reader.skip(length);
  return bufferOf(reader.buf).toString('latin1', start, reader.pos);
}

function bufferOf(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
