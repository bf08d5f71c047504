/**
 * The maximum number of header lines of a request. Node.js keeps only some lines in `rawHeaders` and `headers`, but its
 * parser acts on all of them, such as on a `Content-Length` that no check can see. So each of our HTTP servers keeps
 * more lines than a request may have, and refuses a request that exceeds the limit. An accepted request has thus lost
 * no line.
 * Source: `parserOnHeaders` in lib/_http_common.js of Node.js.
 */

/** Envoy's default. */
export const MAX_HEADER_LINES = 100;

/** For `maxHeadersCount` of a server. When Node.js drops a line, it has kept at least this many. */
export const KEPT_HEADER_LINES = MAX_HEADER_LINES + 1;

/** @param rawHeaders Node's flat list of names and values */
export function hasTooManyLines(rawHeaders: readonly string[]): boolean {
  return rawHeaders.length > 2 * MAX_HEADER_LINES;
}
