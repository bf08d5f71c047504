/**
 * Headers as the `headers` map: one value a name, repeated lines joined with commas, bytes that are not
 * UTF-8 turned into `!`. What such a value cannot have come from exactly one way is ambiguous.
 */
import type { HeaderLookup, RequestHeaders } from '../../protocol/credentials.ts';
import { trimOptionalWhiteSpace } from './raw-headers.ts';

const ABSENT: HeaderLookup = { kind: 'absent' };
const AMBIGUOUS: HeaderLookup = { kind: 'ambiguous' };

export function mergedHeaders(headers: { readonly [name: string]: string }): RequestHeaders {
  return {
    lookup(name) {
      const value = Object.hasOwn(headers, name) ? headers[name] : undefined;
      if (value === undefined) return ABSENT;
      return /[,!]/.test(value) ? AMBIGUOUS : { kind: 'single', value: trimOptionalWhiteSpace(value) };
    },
    names: () => Object.keys(headers),
  };
}
