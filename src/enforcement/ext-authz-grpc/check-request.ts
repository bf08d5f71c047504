/**
 * CheckRequest in, RequestFacts out. A pure mapper; what Envoy really sends, and how each fact was
 * established, is in docs/enforcement.md "What ext_authz really sends".
 */
import type { HeaderLookup, RequestHeaders } from '../../protocol/credentials.ts';
import type { BodyState, RequestFacts } from '../../verifier/decision/request-facts.ts';
import { mergedHeaders } from './merged-headers.ts';
import type { CheckRequest, HttpRequest } from './messages.ts';
import { rawHeaders } from './raw-headers.ts';

/**
 * How Envoy's filter is configured (`--envoy-body`). `buffered`: `with_request_body`, so that a request
 * without the partial-body header has no body. `none`: Envoy shows no bodies, so nothing is known of them.
 */
export type EnvoyBodyMode = 'buffered' | 'none';

/** Set by Envoy alone; it drops a client's own copy. */
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
    // Most denials, and routes that are `unbound`, never ask for it.
    get body() {
      return bodyOf(http, headers, bodyMode);
    },
  };
}

/** Whichever Envoy was told to send; exact lines win over merged ones. */
function headersOf(http: HttpRequest): RequestHeaders {
  const lines = http.header_map;
  return lines === undefined ? mergedHeaders(http.headers ?? {}) : rawHeaders(lines.headers ?? []);
}

/**
 * Envoy may take the scheme from this header. When the caller and a proxy each send one, Envoy joins the values and falls
 * back to the connection's scheme. The sidecar cannot tell which of the three is right.
 */
function schemeOf({ scheme }: HttpRequest, headers: RequestHeaders): string {
  return headers.lookup('x-forwarded-proto').kind === 'ambiguous' ? '' : (scheme ?? '');
}

/**
 * Envoy puts path and query into `path` and leaves the others empty; anything else is not what we know. A byte that is
 * not UTF-8 stands there as `!`, and passes to an HTTP/2 upstream as it is: only the raw `:path` tells them apart.
 */
function targetOf({ path, query, fragment }: HttpRequest, headers: RequestHeaders): string {
  const target = query || fragment ? '' : (path ?? '');
  if (!target.includes('!')) return target;
  const exact = headers.lookup(':path');
  return exact.kind === 'single' && exact.value === target ? target : '';
}

function bodyOf(http: HttpRequest, headers: RequestHeaders, bodyMode: EnvoyBodyMode): BodyState {
  const partial = headers.lookup(PARTIAL_BODY_HEADER);
  // Envoy fills one of the two. With both, nobody knows which one the upstream will receive.
  if (http.raw_body?.length && http.body?.length) return UNKNOWN_BODY;
  // As text (without `pack_as_bytes`) every byte that is not UTF-8 arrives as `!`: nobody knows which it was.
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
 * RFC 9112 section 6: a body is announced by a length or by a transfer coding. After an upgrade bytes follow
 * that Envoy does not buffer, although it is configured to.
 */
function announcesBody(headers: RequestHeaders): boolean {
  const isPresent = (name: string) => headers.lookup(name).kind !== 'absent';
  const length = headers.lookup('content-length');
  return isPresent('transfer-encoding') || isPresent('upgrade') || !isAbsentOrZero(length);
}

function isAbsentOrZero(length: HeaderLookup): boolean {
  return length.kind === 'absent' || (length.kind === 'single' && /^0+$/.test(length.value));
}
