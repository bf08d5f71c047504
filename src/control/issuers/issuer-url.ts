/**
 * The URLs that an operator enters for an issuer and its key set.
 * Source: OpenID Connect Discovery 1.0 sections 3 and 4; RFC 8414 section 2; docs/control.md "Trust Anchor Source".
 */

import { readFetchableUrl, refused, type UrlReading } from '../../outbound-fetch/fetchable-url.ts';
import { isIdentifier } from '../../protocol/identifiers.ts';

const DISCOVERY_PATH = '/.well-known/openid-configuration';

/** An issuer: https, no query, no fragment, nothing but its canonical spelling (with or without a last slash). */
export function readIssuerUrl(text: string): UrlReading {
  if (!isIdentifier(text)) return refused('url_malformed', 'must be 1 to 512 visible ASCII characters');
  const reading = readFetchableUrl(text);
  if (reading.kind === 'url' && text.includes('?')) {
    return refused('url_has_query', 'an issuer has no query');
  }
  return reading;
}

/** A key set's URL: as an issuer, but a query is allowed, since some issuers tell their key sets apart by it. */
export function readKeySetUrl(text: string): UrlReading {
  if (!isIdentifier(text)) return refused('url_malformed', 'must be 1 to 512 visible ASCII characters');
  return readFetchableUrl(text);
}

/** Where the issuer's discovery document lies: one terminating slash is not repeated (Discovery 1.0 section 4). */
export function discoveryUrlOf(issuer: string): string {
  return `${issuer.endsWith('/') ? issuer.slice(0, -1) : issuer}${DISCOVERY_PATH}`;
}

/** Host (with its port, unless it is 443) and path, without a last slash. This is what an operator recognizes a cluster by. */
export function scopeOf(issuer: URL): string {
  return `${issuer.host}${issuer.pathname.replace(/\/$/, '')}`;
}
