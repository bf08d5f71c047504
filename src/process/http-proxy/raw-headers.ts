/** Reads header lines from Node.js's `rawHeaders`, a list of alternating names and values. */
import type { HeaderLookup, RequestHeaders } from '../../protocol/credentials.ts';
import { trimOptionalWhiteSpace } from '../../protocol/optional-white-space.ts';

export type HeaderLine = readonly [name: string, value: string];

/** Lines in order; repeated lines are not joined. */
export function headerLines(rawHeaders: readonly string[]): readonly HeaderLine[] {
  const lines: HeaderLine[] = [];
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    lines.push([rawHeaders[at] ?? '', rawHeaders[at + 1] ?? '']);
  }
  return lines;
}

const ABSENT: HeaderLookup = { kind: 'absent' };
const AMBIGUOUS: HeaderLookup = { kind: 'ambiguous' };

/**
 * Node.js never joins lines in `rawHeaders`, and gives one character for each byte (latin1). So a name that occurs once has
 * exactly the value that was sent.
 */
export function requestHeadersOf(rawHeaders: readonly string[]): RequestHeaders {
  return {
    lookup(name) {
      let found: string | undefined;
      for (let at = 0; at < rawHeaders.length; at += 2) {
        const key = rawHeaders[at];
        if (key?.length !== name.length || key.toLowerCase() !== name) continue;
        if (found !== undefined) return AMBIGUOUS;
        found = rawHeaders[at + 1] ?? '';
      }
      // Optional white space is not part of a value (RFC 9110 section 5.5); HTTP/2 keeps it.
      return found === undefined ? ABSENT : { kind: 'single', value: trimOptionalWhiteSpace(found) };
    },
    values: (name) =>
      headerLines(rawHeaders).flatMap(([key, value]) => (key.toLowerCase() === name ? [value] : [])),
    names: () => headerLines(rawHeaders).map(([name]) => name),
    lines: () => headerLines(rawHeaders),
  };
}
