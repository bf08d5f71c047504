/** Error of an operator command. Its message never contains a token. */
export type OperatorErrorKind = 'usage' | 'refused' | 'timed_out' | 'unreachable';

export class OperatorError extends Error {
  override readonly name = 'OperatorError';
  readonly kind: OperatorErrorKind;
  /** Stable: a code of the client, or the code of Control's problem document. */
  readonly code: string;

  constructor(kind: OperatorErrorKind, code: string, message: string) {
    super(message);
    this.kind = kind;
    this.code = code;
  }
}
