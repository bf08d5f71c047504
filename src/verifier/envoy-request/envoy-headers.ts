/** Which headers Envoy changes before ext_authz sees them. Source: docs/reference/envoy-facts.md. */

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

/** Dictionaries, with a comma between members. Envoy keeps their lines apart (test/e2e/envoy-facts-headers.test.ts). */
const DICTIONARIES: ReadonlySet<string> = new Set(['signature', 'signature-input', 'content-digest']);

/** Whether Envoy joins lines of the name in `header_map`. */
export function isJoinedByEnvoy(name: string): boolean {
  return mayBeJoined(name) && !DICTIONARIES.has(name);
}

/** @param name lower case */
export function mayBeJoined(name: string): boolean {
  // A pseudo-header occurs only once (RFC 9113 section 8.3).
  if (name.startsWith(':')) return false;
  return !name.startsWith('x-') || name.startsWith('x-envoy-') || JOINED_VENDOR_HEADERS.has(name);
}
