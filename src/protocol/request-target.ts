/**
 * Target (raw path and query) and origin of a request. These functions work on the bytes as sent. A URL parser resolves
 * dot segments, turns `\` into `/` and reads `//x` as a host, so it could match one path while the upstream serves
 * another (docs/design/protocol.md "Routes, origins, paths").
 */

const VISIBLE_WITHOUT_FRAGMENT = /^\/[\x21\x22\x24-\x7e]*$/;
const SUSPECT_IN_PATH = /[%;\\]|\/\/|\/\.\.?(?:\/|$)/;
/** An escape of an unreserved character, `/`, `\`, `%`, or a control character. */
const NEEDLESS_OR_DANGEROUS_ESCAPE =
  /%(?:[01][0-9a-f]|7f|2[def5]|3[0-9]|4[1-9a-f]|5[0-9acf]|6[1-9a-f]|7[0-9ae])/i;

const C1_CONTROL = /[\u0080-\u009f]/;

/** The path of a target: everything before the first `?`. */
export function pathOf(target: string): string {
  const query = target.indexOf('?');
  return query === -1 ? target : target.slice(0, query);
}

/** Whether no upstream could read the target's path as another path. */
export function isCanonicalTarget(target: string): boolean {
  if (!VISIBLE_WITHOUT_FRAGMENT.test(target)) return false;
  const path = pathOf(target);
  return !SUSPECT_IN_PATH.test(path) || isCanonicalEscapedPath(path);
}

function isCanonicalEscapedPath(path: string): boolean {
  if (/[;\\]|\/\/|\/\.\.?(?:\/|$)/.test(path) || NEEDLESS_OR_DANGEROUS_ESCAPE.test(path)) return false;
  try {
    // Rejects malformed escapes and ones that do not decode to UTF-8 (ECMA-262 section 19.2.6.5).
    return !C1_CONTROL.test(decodeURIComponent(path));
  } catch {
    return false;
  }
}

export type Scheme = 'http' | 'https';

export function isScheme(value: string): value is Scheme {
  return value === 'https' || value === 'http';
}

const DEFAULT_PORT: { readonly [S in Scheme]: string } = { http: ':80', https: ':443' };

/** Lower case, without the scheme's default port; nothing else changes. */
export function normalizeAuthority(scheme: string, authority: string): string {
  // ASCII only: Unicode's mapping would fold U+212A, the Kelvin sign, to `k`.
  const lower = authority.replace(/[A-Z]/g, (capital) => capital.toLowerCase());
  const port = isScheme(scheme) ? DEFAULT_PORT[scheme] : undefined;
  return port !== undefined && lower.endsWith(port) ? lower.slice(0, -port.length) : lower;
}

const HOST = String.raw`(?:[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?(?:\.[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?)*|\[[0-9a-f:.]+\])`;
const AUTHORITY = new RegExp(`^${HOST}(?::[1-9][0-9]{0,4})?$`);

/** Whether the authority is canonical: no userinfo, trailing dot, default port or capitals. */
export function isCanonicalAuthority(scheme: Scheme, authority: string): boolean {
  return (
    authority.length <= 512 &&
    AUTHORITY.test(authority) &&
    normalizeAuthority(scheme, authority) === authority
  );
}

export interface Origin {
  readonly scheme: Scheme;
  readonly authority: string;
}

/** Parses a canonical `scheme://authority`; undefined for anything else, including a trailing slash. */
export function parseOrigin(text: string): Origin | undefined {
  const match = /^(https?):\/\/(.*)$/.exec(text);
  const scheme = match?.[1];
  const authority = match?.[2];
  if (scheme === undefined || authority === undefined || !isScheme(scheme)) return undefined;
  return isCanonicalAuthority(scheme, authority) ? { scheme, authority } : undefined;
}
