/** Refusals that the parts of the signer share, and their answers. */

import { type ProblemResponse, problemOf } from '../../process/http-proxy/problem.ts';
import type { SigningFailure } from '../sign/request-signer.ts';

/** A failure to sign, or a fault that a part of the signer finds itself. */
export interface Refusal {
  readonly code:
    | SigningFailure['code']
    | 'browser_request'
    | 'host_not_allowed'
    | 'target_not_canonical'
    | 'body_unavailable'
    | 'request_invalid'
    | 'route_unknown'
    | 'token_invalid'
    | 'internal';
  readonly message: string;
}

/** Faults that the caller can correct. */
const STATUS: { readonly [C in Refusal['code']]?: number } = {
  method_invalid: 400,
  url_invalid: 400,
  url_not_canonical: 400,
  header_invalid: 400,
  header_missing: 400,
  header_repeated: 400,
  header_reserved: 400,
  credentials_too_large: 400,
  target_not_canonical: 400,
  body_unavailable: 400,
  request_invalid: 400,
  token_invalid: 401,
  browser_request: 403,
  host_not_allowed: 403,
  route_unknown: 404,
  // Faults after which a later attempt may succeed.
  identity_not_ready: 503,
  passport_expired: 503,
  passport_required: 503,
};
const OTHER_STATUS = 502;

export function problemOfRefusal({ code, message }: Refusal): ProblemResponse {
  const status = STATUS[code] ?? OTHER_STATUS;
  const problem = problemOf(status, `urn:proofgate:fault:${code}`, 'The request was not signed', message);
  return status === 503 ? { ...problem, headers: [...problem.headers, ['retry-after', '1']] } : problem;
}

/**
 * Headers that only browsers send and that scripts of a page cannot remove. `Sec-Fetch-Mode` is not one of them,
 * because `fetch` of Node.js sends it.
 */
const BROWSER_HEADERS: ReadonlySet<string> = new Set([
  'origin',
  'sec-fetch-dest',
  'sec-fetch-site',
  'sec-fetch-user',
]);

/** Recognizes requests of a browser, because any web page can reach a loopback port. */
export function isOfBrowser(headerNames: readonly string[]): boolean {
  return headerNames.some((name) => BROWSER_HEADERS.has(name.toLowerCase()));
}

export const BROWSER_REQUEST: Refusal = {
  code: 'browser_request',
  message: 'a web page may not use the signer',
};
