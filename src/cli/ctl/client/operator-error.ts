/** Error of an operator command. Its message never contains a token. */
export type OperatorErrorKind = 'usage' | 'refused' | 'timed_out' | 'unreachable';

export interface OperatorFault {
  readonly pointer: string;
  readonly reason: string;
}

export class OperatorError extends Error {
  override readonly name = 'OperatorError';
  readonly kind: OperatorErrorKind;
  /** Stable: a code of the client, or the code of Control's problem document. */
  readonly code: string;
  /** Control's faults of the request, with JSON Pointers. */
  readonly faults: readonly OperatorFault[];

  constructor(kind: OperatorErrorKind, code: string, message: string, faults: readonly OperatorFault[] = []) {
    super(message);
    this.kind = kind;
    this.code = code;
    this.faults = faults;
  }
}
