/**
 * Faults of a request's head that make it ambiguous, or that would change it on the way to the upstream. An HTTP
 * enforcement point answers them with 400 before it verifies. Node.js's parser rejects most of them itself; these checks do
 * not rely on it.
 */
import type { HeaderLine } from './raw-headers.ts';

export type RequestFault =
  /** Neither HTTP/1.0, 1.1 nor 2. Node.js reads a request line without a version as HTTP/0.9. */
  | 'http_version'
  /** RFC 9112 section 3.2; in HTTP/2 neither `:authority` nor `host`. */
  | 'host_missing'
  | 'host_repeated'
  /** RFC 9113 section 8.3.1: `host` must equal `:authority`. */
  | 'host_differs'
  /** Would remove a header after it was verified (RFC 9110 section 7.6.1). */
  | 'connection_option'
  /** Message length that two readers could understand differently (RFC 9112 section 6). */
  | 'framing'
  /** RFC 9110 section 9.3.6; a tunnel cannot be verified. */
  | 'method_connect';

export interface RequestHead {
  readonly httpVersion: string;
  readonly method: string;
  /** Without pseudo-header fields. */
  readonly lines: readonly HeaderLine[];
  /** `:authority` of HTTP/2. */
  readonly authority?: string | undefined;
}

/** The first fault; undefined for a request that may be verified. */
export function faultOf({ authority, httpVersion, lines, method }: RequestHead): RequestFault | undefined {
  if (!VERSIONS.has(httpVersion)) return 'http_version';
  if (method === 'CONNECT') return 'method_connect';
  const hosts = valuesOf(lines, 'host');
  if (hosts.length > 1) return 'host_repeated';
  if ((authority ?? hosts[0] ?? '') === '') return 'host_missing';
  if (authority !== undefined && hosts[0] !== undefined && hosts[0] !== authority) return 'host_differs';
  const options = valuesOf(lines, 'connection').flatMap((value) => value.toLowerCase().split(','));
  if (!options.every((option) => HARMLESS_OPTIONS.has(option.trim()))) return 'connection_option';
  return isFramingClear(httpVersion, lines) ? undefined : 'framing';
}

const VERSIONS: ReadonlySet<string> = new Set(['1.0', '1.1', '2.0']);

/** An empty element is allowed (RFC 9110 section 5.6.1.2). */
const HARMLESS_OPTIONS: ReadonlySet<string> = new Set([
  'close',
  'keep-alive',
  'upgrade',
  'te',
  // Sent with an offer of h2c. No enforcement point forwards it.
  'http2-settings',
  '',
]);

/** RFC 9112 section 6.1: a transfer coding beside a length, or in HTTP/1.0, may be an attempt to smuggle a request. */
function isFramingClear(httpVersion: string, lines: readonly HeaderLine[]): boolean {
  const lengths = valuesOf(lines, 'content-length');
  const codings = valuesOf(lines, 'transfer-encoding');
  if (lengths.length > 1 || !lengths.every((length) => /^[0-9]{1,15}$/.test(length))) return false;
  if (codings.length === 0) return true;
  return httpVersion === '1.1' && lengths.length === 0 && codings.join().toLowerCase() === 'chunked';
}

function valuesOf(lines: readonly HeaderLine[], wanted: string): readonly string[] {
  return lines.filter(([name]) => name.toLowerCase() === wanted).map(([, value]) => value);
}
