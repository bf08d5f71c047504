/** Header lines for the upstream: the application's lines with the signer's credentials in place of its own. */

import type { ClientRequest, HeaderLines } from '../../../process/http-proxy/client-exchange.ts';
import { HOP_BY_HOP_HEADERS } from '../../../process/http-proxy/hop-by-hop.ts';
import { headerLines } from '../../../process/http-proxy/raw-headers.ts';
import { acceptsTrailers, joinCookies } from '../../../process/http-proxy/request-lines.ts';
import { trimOptionalWhiteSpace } from '../../../protocol/optional-white-space.ts';
import { hasPassportScheme, isVendorSpelling } from '../../../protocol/wire-names.ts';
import type { CredentialHeaders } from '../../sign/credential-headers.ts';
import type { RequestHeader } from '../../sign/request-headers.ts';

/** The client of the upstream writes the framing and `Host`. */
const REPLACED: ReadonlySet<string> = new Set([...HOP_BY_HOP_HEADERS, 'content-length', 'expect', 'host']);

/** The application's headers without its own credentials and hop-by-hop headers. `Host` is first. */
export function outgoingLines({ rawHeaders }: Pick<ClientRequest, 'rawHeaders'>, host: string): HeaderLines {
  const lines = headerLines(rawHeaders);
  const kept = lines.filter(([name, value]) => {
    const lower = name.toLowerCase();
    if (lower === 'authorization') return !hasPassportScheme(value);
    return !REPLACED.has(lower) && !isVendorSpelling(lower);
  });
  // HTTP/2 preserves white space around values, and HTTP/1.1 does not.
  const trimmed = kept.map(([name, value]) => [name, trimOptionalWhiteSpace(value)] as const);
  const te = acceptsTrailers(lines) ? [['te', 'trailers'] as const] : [];
  return [['host', host], ...joinCookies(trimmed), ...te];
}

/** Headers that the signature may cover: the lines and the length of the body that will be sent. */
export function signableHeaders(lines: HeaderLines, bodyBytes: number): readonly RequestHeader[] {
  const headers = lines.map(([name, value]) => ({ name, value }));
  return bodyBytes === 0 ? headers : [...headers, { name: 'content-length', value: String(bodyBytes) }];
}

export function withCredentials(lines: HeaderLines, credentials: CredentialHeaders): HeaderLines {
  const own = lines.filter(([name]) => !credentials.replaces(name));
  return [...own, ...credentials.reveal().map(({ name, value }) => [name, value] as const)];
}
