/** Answers of the proxy itself to a client's request. */
import type { ClientResponse } from './client-exchange.ts';
import type { ProblemResponse } from './problem.ts';

/** The client's result: a status, or `gone` when it left before the end. */
export type Served = number | 'gone';

export function respond(response: ClientResponse, { body, headers, status }: ProblemResponse): Served {
  if (response.isGone()) return 'gone';
  const bytes = Buffer.from(body);
  response.begin(status, [...headers, ['content-length', String(bytes.byteLength)]], false);
  response.write(bytes);
  response.end([]);
  return status;
}

export function breakOff(response: ClientResponse): Served {
  response.destroy();
  return 'gone';
}
