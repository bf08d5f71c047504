/**
 * What an API does when a request arrives. The target names it, so that a second delivery of the same request meets the same:
 * `?id=…&event=…`.
 */

/** After it the connection stays open and unused. */
const ANSWERED = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
const statusAnswer = (line: string, headers = '') =>
  `HTTP/1.1 ${line}\r\n${headers}Content-Length: 0\r\n\r\n`;

export interface UpstreamEvent {
  /** Whether it happens when the head has arrived; otherwise when the whole request has. */
  readonly at: 'head' | 'end';
  readonly writes?: string;
  readonly ends?: 'close' | 'reset';
}

/** While requests are under way. */
const REQUEST_EVENTS = {
  answered: { at: 'end', writes: ANSWERED },
  closed_after_head: { at: 'head', ends: 'close' },
  reset_after_head: { at: 'head', ends: 'reset' },
  closed_at_end: { at: 'end', ends: 'close' },
  reset_at_end: { at: 'end', ends: 'reset' },
  closed_after_early_hints: { at: 'end', writes: 'HTTP/1.1 103 Early Hints\r\n\r\n', ends: 'close' },
  closed_in_status_line: { at: 'end', writes: 'HTTP/1.1 2', ends: 'close' },
  reset_in_headers: { at: 'end', writes: 'HTTP/1.1 200 OK\r\nContent-Le', ends: 'reset' },
  closed_in_body: { at: 'end', writes: 'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok', ends: 'close' },
  no_http: { at: 'end', writes: 'hello\r\n\r\n', ends: 'close' },
  answered_early: { at: 'head', writes: statusAnswer('413 Content Too Large'), ends: 'close' },
  status_408: {
    at: 'end',
    writes: statusAnswer('408 Request Timeout', 'Connection: close\r\n'),
    ends: 'close',
  },
  status_421: { at: 'end', writes: statusAnswer('421 Misdirected Request') },
  status_425: { at: 'end', writes: statusAnswer('425 Too Early') },
  status_429: { at: 'end', writes: statusAnswer('429 Too Many Requests', 'Retry-After: 0\r\n') },
  status_502: { at: 'end', writes: statusAnswer('502 Bad Gateway') },
  status_503: { at: 'end', writes: statusAnswer('503 Service Unavailable', 'Retry-After: 0\r\n') },
  silent: { at: 'end' },
} as const satisfies Record<string, UpstreamEvent>;

/** On the connection that the next request would use. */
const IDLE_EVENTS = {
  idle_closed: { at: 'end', writes: ANSWERED, ends: 'close' },
  idle_reset: { at: 'end', writes: ANSWERED, ends: 'reset' },
  idle_408: {
    at: 'end',
    writes: `${ANSWERED}${statusAnswer('408 Request Timeout', 'Connection: close\r\n')}`,
    ends: 'close',
  },
} as const satisfies Record<string, UpstreamEvent>;

/** One request, and what happened to the request before it, on the connection that it is likely to use. */
export interface Occasion {
  readonly before: string;
  readonly event: string;
}

export const HTTP1_OCCASIONS: readonly Occasion[] = [
  ...Object.keys(REQUEST_EVENTS).map((event) => ({ before: 'answered', event })),
  ...Object.keys(IDLE_EVENTS).map((before) => ({ before, event: 'answered' })),
];

const EVENTS: ReadonlyMap<string, UpstreamEvent> = new Map(
  Object.entries<UpstreamEvent>({ ...REQUEST_EVENTS, ...IDLE_EVENTS }),
);

export const eventNameOf = (target: string): string => /[?&]event=(\w+)/.exec(target)?.[1] ?? '';

export const eventOf = (target: string): UpstreamEvent =>
  EVENTS.get(eventNameOf(target)) ?? REQUEST_EVENTS.answered;

export const idOf = (target: string): string => /[?&]id=(\w+)/.exec(target)?.[1] ?? '';
