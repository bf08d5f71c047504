/** Classifies replies of Control or a broker: whether the service processed the request, rejected it, or may answer later. */
import { readProblemCode } from './json-answer.ts';
import type { NoReply, ServiceReply } from './service-http.ts';

export type Verdict<T> =
  | { readonly kind: 'done'; readonly value: T }
  /** The service rejected the request; the code says why. */
  | { readonly kind: 'refused'; readonly code: string }
  /** Retry later (408, 429, 503). `isFromService`: the service itself did not process it; otherwise it may have been processed. */
  | {
      readonly kind: 'later';
      readonly code: string;
      readonly retryAfterMs: number | undefined;
      readonly isFromService: boolean;
    }
  | NoReply;

export type Fault = Exclude<Verdict<never>, { readonly kind: 'done' }>;

const UNAVAILABLE = 'unavailable';
const REQUEST_TIMEOUT = 'request_timeout';
/** Statuses after which the same request can be repeated (RFC 9110 section 15.5.9, RFC 6585 section 4), with a code for answers without one. */
const RETRYABLE: ReadonlyMap<number, string> = new Map([
  [408, REQUEST_TIMEOUT],
  [429, 'rate_limited'],
  [503, UNAVAILABLE],
]);

export function verdictOf<T>(reply: ServiceReply, read: (body: string) => T | undefined): Verdict<T> {
  if (reply.kind !== 'answer') return reply;
  const { statusCode, mediaType } = reply;
  if (statusCode === 200 || statusCode === 201) {
    const value = mediaType === 'application/json' ? read(reply.body) : undefined;
    return value === undefined ? { kind: 'unclear', cause: 'answer_invalid' } : { kind: 'done', value };
  }
  const code = mediaType === 'application/problem+json' ? readProblemCode(reply.body) : undefined;
  const generic = RETRYABLE.get(statusCode);
  if (generic !== undefined) return notNow(generic, code, reply.retryAfterMs);
  // A response without a problem document is not from the service. After a 5xx it is unknown whether the service got
  // the request.
  return code !== undefined && statusCode >= 400 && statusCode < 500
    ? { kind: 'refused', code }
    : { kind: 'unclear', cause: 'answer_invalid' };
}

function notNow(generic: string, code: string | undefined, retryAfterMs: number | undefined): Fault {
  // A response without a problem document is from a proxy. The service itself does not know the outcome after it lost its database or
  // the connection.
  const isFromService = code !== undefined && code !== UNAVAILABLE && code !== REQUEST_TIMEOUT;
  return { kind: 'later', code: code ?? generic, retryAfterMs, isFromService };
}
