/** Header lines of the upstream's response as the client gets them. */
import { CONTEXT_HEADERS, REASON_HEADER } from '../protocol/wire-names.ts';
import type { HeaderLines } from './client-exchange.ts';
import { HOP_BY_HOP_HEADERS } from './hop-by-hop.ts';

export interface ResponseHead {
  readonly status: number;
  readonly acceptsTrailers: boolean;
  /** Names that no upstream may send: lower case. */
  readonly withheld: ReadonlySet<string>;
}

/**
 * @param raw names and values in turn, as bytes
 * @throws Error for a status outside of HTTP's five classes, and for a body with a coding that this hop would have to undo
 */
export function responseLines(
  raw: readonly Buffer[],
  { acceptsTrailers, status, withheld }: ResponseHead,
): HeaderLines {
  // RFC 9110 section 15: such a response is invalid.
  if (status > 599) throw new Error('a status above 599');
  const lines = linesOf(raw);
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
  return [...kept, VIA];
}

/** They tell a client that nothing was forwarded, so no upstream may send them. */
export const DENIAL_HEADERS: ReadonlySet<string> = new Set([REASON_HEADER, CONTEXT_HEADERS.decisionId]);

/** The upstream speaks HTTP/1.1 to us. */
const VIA = ['via', '1.1 proofgate'] as const;

/** Fields that must not be trailers (RFC 9110 section 6.5.1), because they frame or route a message. */
const NOT_TRAILERS: ReadonlySet<string> = new Set([
  ...HOP_BY_HOP_HEADERS,
  ...DENIAL_HEADERS,
  'content-length',
  'content-encoding',
  'content-type',
  'content-range',
  'host',
  'set-cookie',
  'authorization',
]);

export function trailerLines(raw: readonly Buffer[]): HeaderLines {
  return linesOf(raw).filter(([name]) => !NOT_TRAILERS.has(name.toLowerCase()));
}

export function linesOf(raw: readonly Buffer[]): HeaderLines {
  const lines: (readonly [string, string])[] = [];
  for (let index = 0; index + 1 < raw.length; index += 2) {
    const [name, value] = [raw[index], raw[index + 1]];
    if (name !== undefined && value !== undefined) {
      lines.push([name.toString('latin1'), value.toString('latin1')]);
    }
  }
  return lines;
}
