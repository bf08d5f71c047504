/**
 * Why Control could not be asked, or what it answered cannot be used: stable codes for log, metric and readiness.
 * Nothing secret is in them: neither the token, nor what came back.
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
  /** What Control asked for, milliseconds. */
  readonly retryAfterMs: number | undefined;

  constructor(code: ControlFailureCode, text: string, retryAfterMs?: number) {
    super(text);
    this.code = code;
    this.retryAfterMs = retryAfterMs;
  }
}

/** What Control asked for with the failure, milliseconds. */
export function retryAfterOf(error: unknown): number | undefined {
  return error instanceof ControlFailure ? error.retryAfterMs : undefined;
}
