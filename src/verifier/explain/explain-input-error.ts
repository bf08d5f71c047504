/** A captured request that cannot be read. The message quotes nothing of it, because it can contain credentials anywhere. */

export type ExplainInputCode = 'request_not_json' | 'request_invalid';

export class ExplainInputError extends Error {
  override readonly name = 'ExplainInputError';
  readonly code: ExplainInputCode;

  constructor(code: ExplainInputCode, message: string) {
    super(message);
    this.code = code;
  }
}
