/** Requests that the egress proxy does not sign, whatever the profiles say, and the answers to them. */
import type { SigningFailure } from '../../client/request-signer.ts';
import type { ClientRequest } from '../../http-proxy/client-exchange.ts';
import { type ProblemResponse, problemOf } from '../../http-proxy/problem.ts';
import { isCanonicalTarget, normalizeAuthority } from '../../protocol/request-target.ts';

const REFUSALS = {
  browser_request: { status: 403, title: 'A web page may not use the signer' },
  host_not_allowed: { status: 403, title: 'Host must be the address of the signer' },
  target_not_canonical: {
    status: 400,
    title: 'The request target must be a path in canonical form; the signer is a base URL, no forward proxy',
  },
  route_not_found: { status: 404, title: 'No --route of the signer has this path' },
} as const;

export type EgressRefusal = keyof typeof REFUSALS;

export function problemOfRefusal(code: EgressRefusal): ProblemResponse {
  const { status, title } = REFUSALS[code];
  return problemOf(status, `urn:proofgate:fault:${code}`, title);
}

/**
 * Headers that browsers alone send, and that scripts of a page cannot remove. Not all of `Sec-Fetch-`: `fetch` of Node.js
 * sends `Sec-Fetch-Mode`.
 */
const BROWSER_HEADERS: ReadonlySet<string> = new Set([
  'origin',
  'sec-fetch-dest',
  'sec-fetch-site',
  'sec-fetch-user',
]);

/** @param hosts authorities of the listener, canonical: another one may be a name that a web page made resolve to it */
export function refusalOf(request: ClientRequest, hosts: ReadonlySet<string>): EgressRefusal | undefined {
  const { authority, rawHeaders, target } = request;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    if (BROWSER_HEADERS.has(rawHeaders[at]?.toLowerCase() ?? '')) return 'browser_request';
  }
  if (!hosts.has(normalizeAuthority('http', authority))) return 'host_not_allowed';
  return isCanonicalTarget(target) ? undefined : 'target_not_canonical';
}

/** @param address on which the proxy listens, with the actual port */
export function hostsOf(address: string): ReadonlySet<string> {
  if (address.startsWith('unix:')) return new Set(['localhost']);
  const port = /:\d+$/.exec(address)?.[0] ?? '';
  return new Set([address, `localhost${port}`].map((host) => normalizeAuthority('http', host.toLowerCase())));
}

type FailureCode = SigningFailure['code'];

/** The caller can change these. */
const FAULTS_OF_REQUEST: ReadonlySet<FailureCode> = new Set<FailureCode>([
  'method_invalid',
  'url_invalid',
  'url_not_canonical',
  'header_invalid',
  'header_missing',
  'header_repeated',
  'header_reserved',
  'credentials_too_large',
]);
/** A later attempt may succeed. */
const FAULTS_OF_MOMENT: ReadonlySet<FailureCode> = new Set<FailureCode>([
  'identity_not_ready',
  'passport_expired',
  'passport_required',
]);

export function problemOfFailure({ code, message }: SigningFailure): ProblemResponse {
  const isOfMoment = FAULTS_OF_MOMENT.has(code);
  const status = FAULTS_OF_REQUEST.has(code) ? 400 : isOfMoment ? 503 : 502;
  const problem = problemOf(status, `urn:proofgate:fault:${code}`, 'The request was not signed', message);
  return isOfMoment ? { ...problem, headers: [...problem.headers, ['retry-after', '1']] } : problem;
}
