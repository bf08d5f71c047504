/** Sends problems as responses of node:http and node:http2. */
import type { ServerResponse } from 'node:http';
import type { Http2ServerResponse } from 'node:http2';
import type { ProblemResponse } from '../../http-proxy/problem.ts';
import type { DeniedDecision } from '../../verifier/decision/decide.ts';
import { problemOfDenial } from '../denial-problem.ts';

export function sendDenial(response: ServerResponse | Http2ServerResponse, decision: DeniedDecision): void {
  sendProblem(response, problemOfDenial(decision));
}

/** Also ends an HTTP/1.1 connection whose request was not read to its end: the rest of it must not count as a request. */
export function sendProblem(response: ServerResponse | Http2ServerResponse, problem: ProblemResponse): void {
  const { req: request } = response;
  const headers: Record<string, string | number> = Object.fromEntries(problem.headers);
  headers['content-length'] = Buffer.byteLength(problem.body);
  if (!('stream' in response) && !request.complete) headers.connection = 'close';
  response.writeHead(problem.status, headers);
  // Node.js sends no body in the response to HEAD.
  response.end(problem.body);
}
