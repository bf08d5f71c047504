/**
 * Validates the URLs that Control fetches. Only the canonical spelling is valid: entered URLs are compared byte by byte
 * with issuers' metadata, and parsers may read other spellings differently.
 *
 * Any port except 0 is allowed, because clusters serve their issuer on 6443 or 8443. A port gets only a TLS handshake
 * until its server presents a certificate for the name.
 *
 * Source: WHATWG URL; docs/operate/control.md "Outbound fetches".
 */
import type { Failure, UrlFailureCode } from './fetch-failures.ts';

export type UrlReading =
  | { readonly kind: 'url'; readonly url: URL }
  | ({ readonly kind: 'refused' } & Failure<UrlFailureCode>);

/** Length of the longest issuer plus the longest path of its metadata (RFC 8414 section 3.1). */
const MAX_URL_CHARACTERS = 512 + '/.well-known/oauth-authorization-server'.length;

/** The rules that the fetcher enforces for every caller. */
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

/** The text between the scheme's slashes and the first character that ends an authority in any parser. */
function authorityOf(text: string): string {
  return /^[^:]*:[/\\]*([^/\\?#]*)/.exec(text)?.[1] ?? '';
}

/**
 * Only the parser's own output is canonical. That rejects capitals in the host, default ports, dot segments, backslashes
 * and numeric addresses such as `0x7f.1`. The parser keeps a trailing dot in the host, so it is rejected here.
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
