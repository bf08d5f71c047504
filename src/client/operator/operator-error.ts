/** What operator commands refuse or could not do. Messages never hold a token. */
export type OperatorErrorKind = 'usage' | 'refused' | 'timed_out' | 'unreachable';

export class OperatorError extends Error {
  override readonly name = 'OperatorError';
  readonly kind: OperatorErrorKind;
  /** Stable: one of ours, or the code of Control's problem. */
  readonly code: string;

  constructor(kind: OperatorErrorKind, code: string, message: string) {
    super(message);
    this.kind = kind;
    this.code = code;
  }
}
