/**
 * Errors of requests to Control, with stable codes for log, metric and readiness. They contain no secrets: neither the
 * token nor response bodies, except for the code of a problem.
 */

export type ControlFailureCode =
  | 'control_unreachable'
  | 'control_timeout'
  | 'control_unauthorized'
  | 'control_throttled'
  | 'control_unavailable'
  | 'control_status'
  | 'control_answer_too_large'
  | 'control_answer_invalid'
  | 'control_file_mismatch'
  | 'control_token_unusable';

export class ControlFailure extends Error {
  override readonly name = 'ControlFailure';
  readonly code: ControlFailureCode;
  /** `Retry-After` of Control's response, milliseconds. */
  readonly retryAfterMs: number | undefined;

  constructor(code: ControlFailureCode, text: string, retryAfterMs?: number) {
    super(text);
    this.code = code;
    this.retryAfterMs = retryAfterMs;
  }
}

/** The `Retry-After` that Control sent with the failure, milliseconds. */
export function retryAfterOf(error: unknown): number | undefined {
  return error instanceof ControlFailure ? error.retryAfterMs : undefined;
}
