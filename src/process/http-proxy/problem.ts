/** Answers of the proxy itself: `application/problem+json` (RFC 9457). */
import type { RequestFault } from './request-faults.ts';

export interface ProblemResponse {
  readonly status: number;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: string;
}

export function problemOf(status: number, type: string, title: string, detail?: string): ProblemResponse {
  const headers = [
    ['content-type', 'application/problem+json'],
    ['cache-control', 'no-store'],
  ] as const;
  return { status, headers, body: JSON.stringify({ type, title, status, detail }) };
}

const FAULT_TITLES: { readonly [F in RequestFault]: string } = {
  http_version: 'The HTTP version is not supported',
  host_missing: 'The request names no host',
  host_repeated: 'The request names more than one host',
  host_differs: 'Host and :authority differ',
  connection_option: 'Connection may name only close, keep-alive, upgrade and te',
  framing: 'The length of the body is ambiguous',
  method_connect: 'CONNECT is not supported',
};

export function problemOfFault(fault: RequestFault): ProblemResponse {
  return problemOf(400, `urn:proofgate:fault:${fault}`, FAULT_TITLES[fault]);
}
