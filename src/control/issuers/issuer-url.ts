/**
 * Rules for the URLs of an issuer and its key set that an operator enters: https, which `readFetchableUrl` demands, and one spelling.
 * Source: OpenID Connect Discovery 1.0 sections 3 and 4; RFC 8414 section 2; docs/operate/control.md "Trust Anchor Source".
 */
import { readFetchableUrl, refused, type UrlReading } from '../../process/outbound-fetch/fetchable-url.ts';
import { isIdentifier } from '../../protocol/identifiers.ts';

const DISCOVERY_PATH = '/.well-known/openid-configuration';

/** An issuer: https, no query, no fragment, canonical spelling (with or without a trailing slash). */
export function readIssuerUrl(text: string): UrlReading {
  if (!isIdentifier(text)) return refused('url_malformed', 'must be 1 to 512 visible ASCII characters');
  const reading = readFetchableUrl(text);
  if (reading.kind === 'url' && text.includes('?')) {
    return refused('url_has_query', 'an issuer has no query');
  }
  return reading;
}

/** A key set's URL: as an issuer, but with an optional query, by which some issuers distinguish their key sets. */
export function readKeySetUrl(text: string): UrlReading {
  if (!isIdentifier(text)) return refused('url_malformed', 'must be 1 to 512 visible ASCII characters');
  return readFetchableUrl(text);
}

/** URL of the issuer's discovery document; a trailing slash is not doubled (Discovery 1.0 section 4). */
export function discoveryUrlOf(issuer: string): string {
  return `${issuer.endsWith('/') ? issuer.slice(0, -1) : issuer}${DISCOVERY_PATH}`;
}

/** Host (with a port other than 443) and path, without a trailing slash. Operators recognize a cluster by it. */
export function scopeOf(issuer: URL): string {
  return `${issuer.host}${issuer.pathname.replace(/\/$/, '')}`;
}
