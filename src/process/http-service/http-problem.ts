/**
 * Errors of a program's HTTP API, by stable code, including those that all programs share.
 * `problem-answers.ts` turns them into problems (RFC 9457).
 */

/** HTTP status and title. */
export type ProblemRow = readonly [status: number, title: string];

/** Codes are stable: clients switch on them. */
export const COMMON_PROBLEMS = {
  request_malformed: [400, 'The request does not match the schema'],
  not_found: [404, 'The resource does not exist'],
  method_not_allowed: [405, 'The resource does not support this method'],
  request_timeout: [408, 'The request took too long to arrive'],
  request_too_large: [413, 'The body is too large'],
  media_type_unsupported: [415, 'Send application/json'],
  rate_limited: [429, 'Too many requests; wait as Retry-After says'],
  headers_too_large: [431, 'The header fields are too large'],
  internal: [500, 'Internal error; nothing was changed'],
} as const satisfies { readonly [code: string]: ProblemRow };

/** `pointer`: a JSON Pointer (RFC 6901) into the resource, such as `/body/path_template`. */
export interface ProblemFault {
  readonly pointer: string;
  readonly reason: string;
}

export interface HttpProblemOptions {
  readonly retryAfterSeconds?: number;
  readonly faults?: readonly ProblemFault[];
}

/** The message is for people and never holds a secret. */
export class HttpProblem<Code extends string = string> extends Error {
  readonly code: Code;
  readonly status: number;
  readonly title: string;
  /** Text beyond the title. */
  readonly detail: string | undefined;
  /** Seconds until a retry makes sense. */
  readonly retryAfterSeconds: number | undefined;
  /** The faults of a request, if it has several. */
  readonly faults: readonly ProblemFault[] | undefined;

  constructor(
    code: Code,
    [status, title]: ProblemRow,
    detail: string | undefined,
    options: HttpProblemOptions = {},
  ) {
    super(detail ?? title);
    this.code = code;
    this.status = status;
    this.title = title;
    this.detail = detail;
    this.retryAfterSeconds = options.retryAfterSeconds;
    this.faults = options.faults;
  }
}

/** Creates a problem that all programs share. */
export function commonProblem(
  code: keyof typeof COMMON_PROBLEMS,
  options: HttpProblemOptions = {},
): HttpProblem {
  return new HttpProblem(code, COMMON_PROBLEMS[code], undefined, options);
}
