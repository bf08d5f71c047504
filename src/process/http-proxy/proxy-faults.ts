/**
 * Answers to failures of the proxy itself, other than denials. Codes are stable.
 * Source: docs/operate/proxy.md "Errors".
 */
import { type ProblemResponse, problemOf } from './problem.ts';

interface ProxyFault {
  readonly status: number;
  readonly title: string;
}

export const PROXY_FAULTS = {
  request_malformed: { status: 400, title: 'The request is not valid HTTP' },
  request_not_forwardable: { status: 400, title: 'The request cannot be sent to the upstream' },
  scheme_differs: { status: 400, title: 'The scheme is not that of the connection' },
  upgrade_refused: { status: 400, title: 'This upgrade is not supported' },
  request_timeout: { status: 408, title: 'The request headers did not arrive in time' },
  body_timeout: { status: 408, title: 'The request body did not arrive in time' },
  body_too_large: { status: 413, title: 'The request body is too large' },
  expectation_failed: { status: 417, title: 'The expectation is not supported' },
  headers_too_large: { status: 431, title: 'The request headers are too large' },
  internal_error: { status: 500, title: 'The proxy failed' },
  upstream_unreachable: { status: 502, title: 'The upstream cannot be reached' },
  upstream_closed: { status: 502, title: 'The upstream closed the connection before it answered' },
  upstream_response_invalid: { status: 502, title: 'The response of the upstream is not valid' },
  overloaded: { status: 503, title: 'Too many requests are in progress' },
  spool_unavailable: { status: 503, title: 'The request body cannot be stored' },
  upstream_busy: { status: 503, title: 'No connection to the upstream is free' },
  upstream_timeout: { status: 504, title: 'The upstream did not answer in time' },
  http_version: { status: 505, title: 'HTTP/1.0 is not supported' },
} as const satisfies { readonly [code: string]: ProxyFault };

export type ProxyFaultCode = keyof typeof PROXY_FAULTS;

export function problemOfProxyFault(code: ProxyFaultCode): ProblemResponse {
  const { status, title } = PROXY_FAULTS[code];
  const problem = problemOf(status, `urn:proofgate:fault:${code}`, title);
  if (status !== 503) return problem;
  return { ...problem, headers: [...problem.headers, ['retry-after', '1']] };
}
