/**
 * How many header lines a request may have. Node.js keeps only some lines in `rawHeaders` and `headers`, and its parser acts on
 * all of them, such as on a `Content-Length` that no check can see. So every HTTP server of ours keeps more lines than a request
 * may have, and refuses a request that has more: then nothing was dropped.
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
