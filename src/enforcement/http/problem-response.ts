/** Answers of HTTP enforcement points that are not the upstream's: `application/problem+json` (RFC 9457). */
import type { ServerResponse } from 'node:http';
import type { Http2ServerResponse } from 'node:http2';
import type { DeniedDecision } from '../../verifier/decision/decide.ts';
import { type DenialProblem, problemOfDenial } from '../denial-problem.ts';
import type { RequestFault } from './request-faults.ts';

const FAULT_TITLES: { readonly [F in RequestFault]: string } = {
  http_version: 'The HTTP version is not supported',
  host_missing: 'The request names no host',
  host_repeated: 'The request names more than one host',
  host_differs: 'Host and :authority differ',
  connection_option: 'Connection may name only close, keep-alive, upgrade and te',
  framing: 'The length of the body is ambiguous',
  method_connect: 'CONNECT is not supported',
};

export function problemOfFault(fault: RequestFault): DenialProblem {
  return problemOf(400, `urn:proofgate:fault:${fault}`, FAULT_TITLES[fault]);
}

export function problemOf(status: number, type: string, title: string): DenialProblem {
  const headers = [
    ['content-type', 'application/problem+json'],
    ['cache-control', 'no-store'],
  ] as const;
  return { status, headers, body: JSON.stringify({ type, title, status }) };
}

export function sendDenial(response: ServerResponse | Http2ServerResponse, decision: DeniedDecision): void {
  sendProblem(response, problemOfDenial(decision));
}

/** Also ends an HTTP/1.1 connection whose request was not read to its end: the rest of it must not count as a request. */
export function sendProblem(response: ServerResponse | Http2ServerResponse, problem: DenialProblem): void {
  const { req: request } = response;
  const headers: Record<string, string | number> = Object.fromEntries(problem.headers);
  headers['content-length'] = Buffer.byteLength(problem.body);
  if (!('stream' in response) && !request.complete) headers.connection = 'close';
  response.writeHead(problem.status, headers);
  // Node.js sends no body in the response to HEAD.
  response.end(problem.body);
}
