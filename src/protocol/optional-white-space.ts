/** Optional white space at the ends of a header's value (RFC 9110 section 5.6.3). */

/**
 * Removes spaces and tabs at either end. Takes time in proportion to the length: `/[\t ]+$/` would begin anew at each of many spaces
 * inside the value, for seconds.
 */
export function trimOptionalWhiteSpace(value: string): string {
  let start = 0;
  let end = value.length;
  while (start < end && isOptionalWhiteSpace(value.charCodeAt(start))) start += 1;
  while (end > start && isOptionalWhiteSpace(value.charCodeAt(end - 1))) end -= 1;
  return end - start === value.length ? value : value.slice(start, end);
}

function isOptionalWhiteSpace(code: number): boolean {
  return code === 0x20 || code === 0x09;
}
