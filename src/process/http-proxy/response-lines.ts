/** Header lines of the upstream's response for the client. */
import { CLOCK_AHEAD_HEADER, CONTEXT_HEADERS, REASON_HEADER } from '../../protocol/wire-names.ts';
import type { HeaderLines } from './client-exchange.ts';
import { HOP_BY_HOP_HEADERS } from './hop-by-hop.ts';

export interface ResponseHead {
  readonly status: number;
  /** Protocol version of the upstream's connection. */
  readonly protocolVersion: '1.1' | '2.0';
  readonly acceptsTrailers: boolean;
  /** Names in lower case that no upstream may send. */
  readonly withheld: ReadonlySet<string>;
}

/**
 * @throws Error for a status outside of HTTP's five classes, and for a body with a coding that this hop would have to undo
 */
export function responseLines(
  lines: HeaderLines,
  { acceptsTrailers, protocolVersion, status, withheld }: ResponseHead,
): HeaderLines {
  // RFC 9110 section 15: such a response is invalid.
  if (status > 599) throw new Error('a status above 599');
  // RFC 9110 section 7.6.1: what Connection names is for this hop.
  const named = new Set(
    lines
      .filter(([name]) => name.toLowerCase() === 'connection')
      .flatMap(([, value]) => value.toLowerCase().split(','))
      .map((option) => option.trim()),
  );
  const codings = lines.filter(([name]) => name.toLowerCase() === 'transfer-encoding');
  if (codings.length > 1 || codings.some(([, value]) => value.trim().toLowerCase() !== 'chunked')) {
    throw new Error('a transfer coding other than chunked');
  }
  const kept = lines.filter(([name]) => {
    const lower = name.toLowerCase();
    if (lower === 'trailer') return acceptsTrailers;
    // RFC 9110 section 8.6: 204 has no length.
    if (lower === 'content-length') return status !== 204 && codings.length === 0;
    return !HOP_BY_HOP_HEADERS.has(lower) && !named.has(lower) && !withheld.has(lower);
  });
  return [...kept, ['via', `${protocolVersion} proofgate`]];
}

/** These headers mean that nothing was forwarded, so no upstream may send them. */
export const DENIAL_HEADERS: ReadonlySet<string> = new Set([REASON_HEADER, CONTEXT_HEADERS.decisionId]);

/**
 * Fields that must not be trailers, because they frame or route a message (RFC 9110 section 6.5.1), or only the proxy
 * may send them.
 */
const NOT_TRAILERS: ReadonlySet<string> = new Set([
  ...HOP_BY_HOP_HEADERS,
  ...DENIAL_HEADERS,
  CLOCK_AHEAD_HEADER,
  'content-length',
  'content-encoding',
  'content-type',
  'content-range',
  'host',
  'set-cookie',
  'authorization',
]);

export function trailerLines(lines: HeaderLines): HeaderLines {
  return lines.filter(([name]) => !NOT_TRAILERS.has(name.toLowerCase()));
}
