/**
 * The two cookies that Control sets: the session's, and one that binds a sign-in to the browser that began it. Both are
 * host-only, HttpOnly and SameSite.
 * Source: RFC 6265bis section 4.1.3 (`__Host-`), docs/control.md "Operators".
 */

export interface BrowserCookies {
  readonly session: string;
  readonly signIn: string;
  /** Whether browsers send them over TLS only. */
  readonly secure: boolean;
}

/**
 * The `__Host-` prefix requires TLS. If any public URL is plain HTTP, the names have no prefix.
 * @param publicUrls values of `--public-url`
 */
export function browserCookies(publicUrls: readonly string[]): BrowserCookies {
  const secure = publicUrls.every((url) => url.startsWith('https://'));
  const prefix = secure ? '__Host-' : '';
  return { session: `${prefix}proofgate_session`, signIn: `${prefix}proofgate_sign_in`, secure };
}
