/** Error of a call to a broker or of its inputs: a kind, a stable code and an explanation. */

export type BrokerFault =
  /** An input is invalid: correct it and run again. */
  | 'usage'
  /** The broker rejected the caller or the request. */
  | 'refused'
  /** No answer in time. */
  | 'timed_out'
  /** The broker gave no valid answer, or asks to retry later. */
  | 'unreachable';

/** Neither code nor message contains the broker's own texts or a secret. */
export class BrokerError extends Error {
  override readonly name = 'BrokerError';
  readonly kind: BrokerFault;
  /** Snake case: a code of the client, or the `code` of the broker's problem document. */
  readonly code: string;
  readonly retryAfterMs: number | undefined;

  constructor(kind: BrokerFault, code: string, message: string, retryAfterMs?: number) {
    super(message);
    this.kind = kind;
    this.code = code;
    this.retryAfterMs = retryAfterMs;
  }
}
