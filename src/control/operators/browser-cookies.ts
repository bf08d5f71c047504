/**
 * The two cookies that Control gives a browser: the session's, and the one that ties a sign-in to the browser in which it
 * was begun. Both are for this host alone, unseen by scripts, and not sent along by other sites' requests.
 * Source: RFC 6265bis section 4.1.3 (`__Host-`), docs/control.md "Operators".
 */

export interface BrowserCookies {
  readonly session: string;
  readonly signIn: string;
  /** Whether browsers must send them over TLS only. */
  readonly secure: boolean;
}

/**
 * `__Host-` needs TLS; where any of Control's URLs is plain HTTP (loopback, or told so), names are plain.
 * @param publicUrls of `--public-url`
 */
export function browserCookies(publicUrls: readonly string[]): BrowserCookies {
  const secure = publicUrls.every((url) => url.startsWith('https://'));
  const prefix = secure ? '__Host-' : '';
  return { session: `${prefix}proofgate_session`, signIn: `${prefix}proofgate_sign_in`, secure };
}
