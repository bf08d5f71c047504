/**
 * The URLs that Control fetches. One spelling each: what is entered is compared byte by byte with what issuers say of themselves,
 * and a spelling that two parsers may read differently is no identifier.
 *
 * Any port but 0 is allowed: clusters serve their issuer on 6443 or 8443, and before anything but a TLS greeting reaches a
 * port, its server must have shown a certificate for the name.
 *
 * Source: WHATWG URL; docs/control.md "Outbound fetches".
 */
import type { Failure, UrlFailureCode } from './fetch-failures.ts';

export type UrlReading =
  | { readonly kind: 'url'; readonly url: URL }
  | ({ readonly kind: 'refused' } & Failure<UrlFailureCode>);

/** An issuer of the greatest length, and the path of its discovery document behind it. */
const MAX_URL_CHARACTERS = 512 + '/.well-known/openid-configuration'.length;

/** What the fetcher itself insists on, whoever calls it. */
export function readFetchableUrl(text: string): UrlReading {
  if (text.length > MAX_URL_CHARACTERS || !/^[\x21-\x7e]+$/.test(text)) {
    return refused('url_malformed', 'must be visible ASCII characters, not too many of them');
  }
  if (!URL.canParse(text)) return refused('url_malformed', 'is not an absolute URL');
  const url = new URL(text);
  if (url.protocol !== 'https:') return refused('url_not_https', 'must begin with https://');
  if (url.username !== '' || url.password !== '' || authorityOf(text).includes('@')) {
    return refused('url_has_credentials', 'must not hold a user name or password');
  }
  if (text.includes('#')) return refused('url_has_fragment', 'must not hold a fragment');
  if (!isCanonical(text, url)) return refused('url_not_canonical', `must be spelt ${canonicalOf(url)}`);
  return { kind: 'url', url };
}

/** Between the scheme's slashes and the first character that ends an authority in any parser's eyes. */
function authorityOf(text: string): string {
  return /^[^:]*:[/\\]*([^/\\?#]*)/.exec(text)?.[1] ?? '';
}

/**
 * The parser's own output is the one spelling. That refuses capitals in the host, default ports, dot segments, backslashes
 * and numbers that are addresses in disguise (`0x7f.1`). A last dot in the host survives the parser and is refused here.
 */
function isCanonical(text: string, url: URL): boolean {
  if (url.port === '0' || url.hostname.endsWith('.')) return false;
  return text === url.href || `${text}/` === url.href;
}

function canonicalOf(url: URL): string {
  return url.port === '0' || url.hostname.endsWith('.')
    ? 'without port 0 or a last dot in the host'
    : url.href;
}

export function refused(code: UrlFailureCode, detail: string): UrlReading {
  return { kind: 'refused', code, detail };
}
