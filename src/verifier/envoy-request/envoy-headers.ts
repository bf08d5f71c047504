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

/** @param name lower case */
export function mayBeJoined(name: string): boolean {
  // A pseudo-header occurs only once (RFC 9113 section 8.3).
  if (name.startsWith(':')) return false;
  return !name.startsWith('x-') || name.startsWith('x-envoy-') || JOINED_VENDOR_HEADERS.has(name);
}
