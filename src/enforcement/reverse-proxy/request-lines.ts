/**
 * Header lines of a verified request for the upstream: the client's lines without hop-by-hop headers, and lines about
 * the peer. The upstream's client writes the framing.
 * Source: docs/operate/proxy.md "What the upstream receives".
 */

import type { ClientRequest, HeaderLines } from '../../process/http-proxy/client-exchange.ts';
import { HOP_BY_HOP_HEADERS } from '../../process/http-proxy/hop-by-hop.ts';
import { requestHeadersOf } from '../../process/http-proxy/raw-headers.ts';
import { acceptsTrailers, joinCookies } from '../../process/http-proxy/request-lines.ts';
import type { RequestHeaders } from '../../protocol/credentials.ts';

export interface PeerFacts extends Pick<ClientRequest, 'peerAddress' | 'protocolVersion' | 'scheme'> {
  /** `Host` for the upstream. */
  readonly host: string;
  /** The authority that was verified. */
  readonly verifiedAuthority: string;
}

/** @param lines the client's lines, without credentials and with context headers */
export function linesForUpstream(lines: HeaderLines, facts: PeerFacts): HeaderLines {
  const kept = lines.filter(([name]) => !isReplaced(name));
  const forwarded: (readonly [string, string])[] = [
    ['via', `${facts.protocolVersion} proofgate`],
    ['x-forwarded-proto', facts.scheme],
    ['x-forwarded-host', facts.verifiedAuthority],
  ];
  if (facts.peerAddress !== undefined) {
    // A dual-stack listener shows IPv4 addresses in the form of IPv6 (RFC 4291 section 2.5.5.2).
    forwarded.push(['x-forwarded-for', facts.peerAddress.replace(/^::ffff:(?=\d+\.)/, '')]);
  }
  if (acceptsTrailers(lines)) forwarded.push(['te', 'trailers']);
  return [['host', facts.host], ...joinCookies(kept), ...forwarded];
}

const REPLACED: ReadonlySet<string> = new Set([
  ...HOP_BY_HOP_HEADERS,
  'content-length',
  'expect',
  'forwarded',
  'host',
  'x-real-ip',
]);

/** Upstreams behind CGI-like interfaces read `_`, `.` and other characters as `-`, so every spelling is replaced. */
function isReplaced(name: string): boolean {
  const canonical = name.toLowerCase().replace(/[^a-z0-9]/g, '-');
  return REPLACED.has(canonical) || canonical.startsWith('x-forwarded-');
}

/**
 * The client's headers for the verifier. A header that would reach the upstream changed is ambiguous, so that a proof
 * that signs it is denied.
 */
export function verifiableHeadersOf(rawHeaders: readonly string[], host: string): RequestHeaders {
  const headers = requestHeadersOf(rawHeaders);
  return {
    ...headers,
    lookup: (name) => {
      const found = headers.lookup(name);
      if (found.kind !== 'single') return found;
      if (name === 'host') return found.value === host ? found : AMBIGUOUS;
      if (name === 'content-length') return /^[1-9][0-9]*$/.test(found.value) ? found : AMBIGUOUS;
      return name === 'via' || isReplaced(name) ? AMBIGUOUS : found;
    },
  };
}

const AMBIGUOUS = { kind: 'ambiguous' } as const;
