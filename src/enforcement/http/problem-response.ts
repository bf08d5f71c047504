/** Sends problems as responses of node:http. */
import type { ServerResponse } from 'node:http';
import type { ProblemResponse } from '../../process/http-proxy/problem.ts';

/**
 * Also ends a connection whose request was not read to its end: the rest of it must not count as a request. Never throws: when
 * the answer has begun, for example because a time-out has sent it, the connection ends with it.
 */
export function sendProblem(response: ServerResponse, problem: ProblemResponse): void {
  if (response.headersSent) {
    endConnection(response);
    return;
  }
  const headers: Record<string, string | number> = Object.fromEntries(problem.headers);
  headers['content-length'] = Buffer.byteLength(problem.body);
  if (!response.req.complete) headers.connection = 'close';
  response.writeHead(problem.status, headers);
  // Node.js sends no body in the response to HEAD.
  response.end(problem.body);
}

/** A response that has ended no longer has its socket. */
export function endConnection({ req: { socket } }: ServerResponse): void {
  socket.destroy();
}
