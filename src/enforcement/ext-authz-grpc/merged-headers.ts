/**
 * Reads headers from Envoy's `headers` map: one value for each name, repeated lines joined with commas, bytes that are
 * not UTF-8 replaced by `!`. A value that could have come from more than one original is ambiguous.
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
