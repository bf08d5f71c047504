/** Reads headers in the forms that Node's clients accept, and removes those that only a signer may set. */

import { trimOptionalWhiteSpace } from '../../protocol/optional-white-space.ts';
import { AUTHORIZATION_HEADER, hasPassportScheme, isVendorSpelling } from '../../protocol/wire-names.ts';
import type { RequestHeader } from '../sign/request-headers.ts';

type HeaderValue = string | number | readonly string[] | undefined;
/** An object, pairs such as those of `Headers`, or names and values in turn. */
export type HeadersLike =
  | { readonly [name: string]: HeaderValue }
  | Iterable<readonly [name: string, value: string | readonly string[] | undefined]>
  | readonly string[];

/**
 * Header lines in their order. Values are trimmed, because the receiver ignores white space at their ends (RFC 9110
 * section 5.5).
 */
export function headerLinesOf(headers: HeadersLike | null | undefined): readonly RequestHeader[] {
  return pairsOf(headers ?? {}).flatMap(([name, value]) =>
    [value].flat().map((each) => ({ name, value: trimOptionalWhiteSpace(String(each)) })),
  );
}

/** Whether the value has one of the forms. Its members are not checked here. */
export function isHeadersLike(value: unknown): value is HeadersLike {
  return typeof value === 'object' && value !== null;
}

function pairsOf(headers: HeadersLike): readonly (readonly [string, HeaderValue])[] {
  if (!isIterable(headers)) return Object.entries(headers).filter(([, value]) => value !== undefined);
  const items = [...headers];
  const pairs: [string, HeaderValue][] = [];
  for (let i = 0; i < items.length; i++) {
    const item = items[i];
    if (typeof item === 'string') pairs.push([item, String(items[++i])]);
    else if (item?.[1] !== undefined) pairs.push([item[0], item[1]]);
  }
  return pairs;
}

function isIterable(headers: HeadersLike): headers is Exclude<HeadersLike, { [name: string]: HeaderValue }> {
  return Symbol.iterator in headers;
}

/** Whether only a signer may set this header, so that the caller's own is removed. */
export function isOfSigner(name: string, value: string): boolean {
  const lowerName = name.toLowerCase();
  return isVendorSpelling(lowerName) || (lowerName === AUTHORIZATION_HEADER && hasPassportScheme(value));
}
