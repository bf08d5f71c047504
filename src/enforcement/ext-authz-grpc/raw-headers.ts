/**
 * Reads headers from Envoy's `header_map` (`encode_raw_headers`): one entry for each line, raw bytes. Envoy itself
 * joins the lines of some names before the filter sees them. For those, and for names that have not been measured, a
 * value with a comma is ambiguous.
 */
import type { HeaderLookup, RequestHeaders } from '../../protocol/credentials.ts';
import type { HeaderValue } from './messages.ts';

const ABSENT: HeaderLookup = { kind: 'absent' };
const AMBIGUOUS: HeaderLookup = { kind: 'ambiguous' };

export function rawHeaders(lines: readonly HeaderValue[]): RequestHeaders {
  return {
    lookup: (name) => lookup(lines, name),
    names: () => lines.map(({ key }) => key ?? ''),
  };
}

function lookup(lines: readonly HeaderValue[], name: string): HeaderLookup {
  let found: HeaderValue | undefined;
  for (const line of lines) {
    if (!isNamed(line.key, name)) continue;
    if (found !== undefined) return AMBIGUOUS;
    found = line;
  }
  if (found === undefined) return ABSENT;
  const value = trimOptionalWhiteSpace(found.raw_value?.toString('latin1') ?? found.value ?? '');
  return value.includes(',') && mayBeJoined(name) ? AMBIGUOUS : { kind: 'single', value };
}

/** Envoy sends lower case; the comparison ignores case to be safe. */
function isNamed(key: string | undefined, name: string): boolean {
  if (key === undefined || key.length !== name.length) return false;
  return key === name || key.toLowerCase() === name;
}

/** Trims spaces and tabs at either end (RFC 9110 section 5.6.3). */
export function trimOptionalWhiteSpace(value: string): string {
  let start = 0;
  let end = value.length;
  while (start < end && isOptionalWhiteSpace(value.charCodeAt(start))) start += 1;
  while (end > start && isOptionalWhiteSpace(value.charCodeAt(end - 1))) end -= 1;
  return end - start === value.length ? value : value.slice(start, end);
}

function isOptionalWhiteSpace(code: number): boolean {
  return code === 0x20 || code === 0x09;
}

/** Envoy keeps repeated `x-…` lines apart, except for these (measured: test/e2e/envoy-facts-headers.test.ts). */
const JOINED_VENDOR_HEADERS: ReadonlySet<string> = new Set([
  'x-client-trace-id',
  'x-forwarded-client-cert',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-port',
  'x-forwarded-proto',
  'x-request-id',
]);

function mayBeJoined(name: string): boolean {
  // A pseudo-header occurs only once (RFC 9113 section 8.3).
  if (name.startsWith(':')) return false;
  return !name.startsWith('x-') || name.startsWith('x-envoy-') || JOINED_VENDOR_HEADERS.has(name);
}
