/** Error of an enrollment that ends without a key: a kind, a stable code and an explanation. */

export type EnrollFault =
  /** An input is invalid: correct it and run again. */
  | 'usage'
  /** Control rejected the enrollment; nothing was issued. */
  | 'refused'
  /** Timed out, stopped, or not decided yet: the next run resumes from here. */
  | 'pending'
  /** Control sent no valid response. */
  | 'unreachable';

/** Neither code nor message contains Control's own texts or a secret. */
export class EnrollError extends Error {
  override readonly name = 'EnrollError';
  readonly kind: EnrollFault;
  /** Snake case: a code of the client, or the `code` of Control's problem document. */
  readonly code: string;
  /** Control's last `Retry-After`. */
  readonly retryAfterMs: number | undefined;

  constructor(kind: EnrollFault, code: string, message: string, retryAfterMs?: number) {
    super(message);
    this.kind = kind;
    this.code = code;
    this.retryAfterMs = retryAfterMs;
  }
}
