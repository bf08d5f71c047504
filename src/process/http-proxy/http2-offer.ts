/**
 * The offer to switch to HTTP/2 in plaintext (`h2c`, RFC 7540 section 3.2). Java's HttpClient and `curl --http2` send
 * it with requests that can also be answered over HTTP/1.1. A server may ignore it (RFC 9110 section 7.8), and ours
 * handles such a request like any other. It must never become a tunnel, which nothing would verify.
 */
import { headerLines } from './raw-headers.ts';

/**
 * Whether a request asks for `h2c` and for nothing else. Node.js's parser does not check the transfer coding of a
 * request that asks for an upgrade, so only `chunked` is accepted.
 */
export function offersOnlyHttp2(rawHeaders: readonly string[]): boolean {
  const lines = headerLines(rawHeaders).map(([name, value]) => [
    name.toLowerCase(),
    value.trim().toLowerCase(),
  ]);
  const valuesOf = (wanted: string) => lines.flatMap(([name, value]) => (name === wanted ? [value] : []));
  const [offer, ...moreOffers] = valuesOf('upgrade');
  const [coding = 'chunked', ...moreCodings] = valuesOf('transfer-encoding');
  return offer === 'h2c' && coding === 'chunked' && moreOffers.length + moreCodings.length === 0;
}
