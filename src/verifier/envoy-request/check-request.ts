/**
 * Maps a CheckRequest to RequestFacts. docs/reference/envoy-facts.md says what Envoy sends, and how
 * each fact was established.
 */

import type { CheckRequest, HeaderValue, HttpRequest } from '../../process/ext-authz/request-messages.ts';
import type { HeaderLookup, RequestHeaders } from '../../protocol/credentials.ts';
import { trimOptionalWhiteSpace } from '../../protocol/optional-white-space.ts';
import type { BodyState, RequestFacts } from '../decision/facts/request-facts.ts';
import { isJoinedByEnvoy } from './envoy-headers.ts';

/**
 * How Envoy's filter is configured (`--envoy-body`). `buffered`: the filter has `with_request_body`, so a request
 * without the partial-body header has no body. `none`: Envoy sends no bodies, so they are unknown.
 */
export type EnvoyBodyMode = 'buffered' | 'none';

/** Only Envoy sets this header; it drops a copy that the client sent. */
const PARTIAL_BODY_HEADER = 'x-envoy-auth-partial-body';

const NO_REQUEST: HttpRequest = {};

export function factsOfCheckRequest(request: CheckRequest, bodyMode: EnvoyBodyMode): RequestFacts {
  const http = request.attributes?.request?.http ?? NO_REQUEST;
  const headers = headersOf(http);
  return {
    method: http.method ?? '',
    scheme: schemeOf(http, headers),
    authority: http.host ?? '',
    target: targetOf(http, headers),
    headers,
    removesProofs: true,
    // Lazy: most denials, and routes that are `unbound`, never read it.
    get body() {
      return bodyOf(http, headers, bodyMode);
    },
  };
}

/** Reads the headers in the form that Envoy is configured to send. Raw lines take precedence over merged ones. */
function headersOf(http: HttpRequest): RequestHeaders {
  const lines = http.header_map;
  return lines === undefined ? mergedHeaders(http.headers ?? {}) : new RawHeaders(lines.headers ?? []);
}

const ABSENT: HeaderLookup = { kind: 'absent' };
const AMBIGUOUS: HeaderLookup = { kind: 'ambiguous' };

/**
 * Headers of Envoy's `headers` map: one value for each name, repeated lines joined with commas, bytes that are not UTF-8
 * replaced by `!`. A value that could have come from more than one original is ambiguous.
 */
function mergedHeaders(headers: { readonly [name: string]: string }): RequestHeaders {
  return {
    lookup(name) {
      const value = Object.hasOwn(headers, name) ? headers[name] : undefined;
      if (value === undefined) return ABSENT;
      return /[,!]/.test(value) ? AMBIGUOUS : { kind: 'single', value: trimOptionalWhiteSpace(value) };
    },
    values: (name) => (Object.hasOwn(headers, name) ? [headers[name] ?? ''] : []),
    names: () => Object.keys(headers),
    lines: () => Object.entries(headers),
  };
}

/**
 * Headers of Envoy's `header_map` (`encode_raw_headers`): one entry for each line, raw bytes. Envoy itself joins the lines
 * of some names before the filter sees them. For those, and for names that have not been measured, a value with a comma is
 * ambiguous.
 */
class RawHeaders implements RequestHeaders {
  readonly #lines: readonly HeaderValue[];

  constructor(lines: readonly HeaderValue[]) {
    this.#lines = lines;
  }

  lookup(name: string): HeaderLookup {
    return lookupLine(this.#lines, name);
  }

  values(name: string): readonly string[] {
    return this.#lines.filter(({ key }) => isNamed(key, name)).map(valueOfLine);
  }

  names(): readonly string[] {
    return this.#lines.map(({ key }) => key ?? '');
  }

  lines(): readonly (readonly [name: string, value: string])[] {
    return this.#lines.map((line) => [line.key ?? '', valueOfLine(line)]);
  }
}

function lookupLine(lines: readonly HeaderValue[], name: string): HeaderLookup {
  let found: HeaderValue | undefined;
  for (const line of lines) {
    if (!isNamed(line.key, name)) continue;
    if (found !== undefined) return AMBIGUOUS;
    found = line;
  }
  if (found === undefined) return ABSENT;
  const value = trimOptionalWhiteSpace(valueOfLine(found));
  return value.includes(',') && isJoinedByEnvoy(name) ? AMBIGUOUS : { kind: 'single', value };
}

function valueOfLine({ raw_text, raw_value, value }: HeaderValue): string {
  return raw_text ?? raw_value?.toString('latin1') ?? value ?? '';
}

/** Envoy sends lower case; the comparison ignores case to be safe. */
function isNamed(key: string | undefined, name: string): boolean {
  if (key === undefined || key.length !== name.length) return false;
  return key === name || key.toLowerCase() === name;
}

/**
 * Envoy may take the scheme from this header. When the caller and a proxy each send one, Envoy joins the values and falls
 * back to the connection's scheme. The sidecar cannot tell which of the three is right.
 */
function schemeOf({ scheme }: HttpRequest, headers: RequestHeaders): string {
  return headers.lookup('x-forwarded-proto').kind === 'ambiguous' ? '' : (scheme ?? '');
}

/**
 * Envoy puts path and query into `path` and leaves `query` and `fragment` empty; anything else is rejected. `path`
 * shows a byte that is not UTF-8 as `!`, but Envoy forwards it unchanged to an HTTP/2 upstream. Only the raw `:path`
 * tells the two apart.
 */
function targetOf({ path, query, fragment }: HttpRequest, headers: RequestHeaders): string {
  if (!isLengthClear(headers)) return '';
  const target = query || fragment ? '' : (path ?? '');
  if (!target.includes('!')) return target;
  const exact = headers.lookup(':path');
  return exact.kind === 'single' && exact.value === target ? target : '';
}

/**
 * Envoy 1.36 takes a `Content-Length` of `+5` from HTTP/2 callers and forwards it unchanged. An HTTP/1.1 upstream that reads
 * another number would take the body for a request (RFC 9112 section 11.2).
 */
function isLengthClear(headers: RequestHeaders): boolean {
  const length = headers.lookup('content-length');
  return length.kind === 'absent' || (length.kind === 'single' && /^[0-9]+$/.test(length.value));
}

function bodyOf(http: HttpRequest, headers: RequestHeaders, bodyMode: EnvoyBodyMode): BodyState {
  const partial = headers.lookup(PARTIAL_BODY_HEADER);
  // Envoy fills one of the two. With both, it is unknown which one the upstream receives.
  if (http.raw_body?.length && http.body?.length) return UNKNOWN_BODY;
  // As text (without `pack_as_bytes`) every byte that is not UTF-8 arrives as `!`, so the original byte is unknown.
  if (http.body?.includes(EXCLAMATION_MARK)) return UNKNOWN_BODY;
  const bytes = http.raw_body?.length ? http.raw_body : http.body;
  if (partial.kind === 'single') {
    return partial.value === 'false' ? { kind: 'exact', bytes: bytes ?? NO_BYTES } : UNKNOWN_BODY;
  }
  const certainlyNone =
    partial.kind === 'absent' && bodyMode === 'buffered' && !bytes?.length && !announcesBody(headers);
  return certainlyNone ? NO_BODY : UNKNOWN_BODY;
}

const EXCLAMATION_MARK = 0x21;
const NO_BYTES = Buffer.alloc(0);
const NO_BODY: BodyState = { kind: 'none' };
const UNKNOWN_BODY: BodyState = { kind: 'unknown' };

/**
 * RFC 9112 section 6: a length or a transfer coding announces a body. After an upgrade, bytes follow that Envoy does
 * not buffer, although it is configured to.
 */
function announcesBody(headers: RequestHeaders): boolean {
  const isPresent = (name: string) => headers.lookup(name).kind !== 'absent';
  const length = headers.lookup('content-length');
  return isPresent('transfer-encoding') || isPresent('upgrade') || !isAbsentOrZero(length);
}

function isAbsentOrZero(length: HeaderLookup): boolean {
  return length.kind === 'absent' || (length.kind === 'single' && /^0+$/.test(length.value));
}
