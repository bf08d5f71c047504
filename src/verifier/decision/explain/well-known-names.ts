/**
 * Names that cannot contain a secret, because they are in a published list or in a format that `explain` reads. Any other
 * name comes from the caller and could be a credential.
 * Source: IANA "HTTP Field Name Registry", RFC 9110 section 9, docs/operate/explain.md "What is never shown".
 */

/** Lower case. */
const HEADERS: ReadonlySet<string> = new Set([
  ':authority',
  ':method',
  ':path',
  ':scheme',
  'accept',
  'accept-encoding',
  'accept-language',
  'authorization',
  'cache-control',
  'connection',
  'content-digest',
  'content-encoding',
  'content-language',
  'content-length',
  'content-type',
  'cookie',
  'date',
  'digest',
  'dpop',
  'etag',
  'expect',
  'forwarded',
  'from',
  'host',
  'idempotency-key',
  'if-match',
  'if-modified-since',
  'if-none-match',
  'if-range',
  'if-unmodified-since',
  'last-modified',
  'origin',
  'prefer',
  'proxy-authorization',
  'range',
  'referer',
  'te',
  'traceparent',
  'tracestate',
  'transfer-encoding',
  'user-agent',
  'via',
  'x-api-key',
  'x-envoy-auth-partial-body',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-proto',
  'x-proofgate-passport',
  'x-proofgate-signature',
  'x-proofgate-transcript',
  'x-request-id',
]);

export function isWellKnownHeader(name: string): boolean {
  return HEADERS.has(name.toLowerCase());
}

const METHODS: ReadonlySet<string> = new Set([
  'CONNECT',
  'DELETE',
  'GET',
  'HEAD',
  'OPTIONS',
  'PATCH',
  'POST',
  'PUT',
  'QUERY',
  'TRACE',
]);

export function isWellKnownMethod(method: string): boolean {
  return METHODS.has(method);
}

/** Member names of a capture, of an audit event as far as it is read, and of a CheckRequest in both spellings. */
const MEMBERS: ReadonlySet<string> = new Set([
  ...['event', 'method', 'scheme', 'authority', 'path', 'headers', 'body', 'body_base64'],
  ...['body_unknown', 'accepts_http_signatures', 'explanation', 'text', 'header_lengths', 'decision'],
  ...['time', 'outcome', 'decision_id', 'reason', 'detail'],
  ...['bundle_revision', 'bundle_head', 'transcript_sha256'],
  ...['attributes', 'request', 'http', 'host', 'query', 'fragment', 'key', 'value'],
  ...['header_map', 'headerMap', 'raw_body', 'rawBody', 'raw_value', 'rawValue'],
]);

/** Whether an error may name a member of a captured document. */
export function isWellKnownMember(name: string): boolean {
  return MEMBERS.has(name) || isWellKnownHeader(name);
}
