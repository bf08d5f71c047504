/** Header lines of a request that every proxy must read or rewrite. */
import type { HeaderLines } from './client-exchange.ts';

/** RFC 9110 section 10.1.4. */
export function acceptsTrailers(lines: HeaderLines): boolean {
  return lines.some(
    ([name, value]) =>
      name.toLowerCase() === 'te' &&
      value
        .toLowerCase()
        .split(',')
        .some((option) => option.trim() === 'trailers'),
  );
}

/** HTTP/2 may split cookies, which HTTP/1.1 must not (RFC 9113 section 8.2.3). */
export function joinCookies(lines: HeaderLines): HeaderLines {
  const cookies = lines.filter(([name]) => name.toLowerCase() === 'cookie');
  if (cookies.length < 2) return lines;
  const joined = cookies.map(([, value]) => value).join('; ');
  return [...lines.filter(([name]) => name.toLowerCase() !== 'cookie'), ['cookie', joined]];
}
