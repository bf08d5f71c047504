/** Every way in which enrolling ends without a key, as a stable code and what it means for whoever asked. */

export type EnrollFault =
  /** What was given cannot be used: mend it and call again. */
  | 'usage'
  /** Control turned it down; nothing was issued. */
  | 'refused'
  /** Time is up, somebody asked to stop, or Control has not decided: calling again goes on from here. */
  | 'pending'
  /** No usable answer came from there. */
  | 'unreachable';

/** Neither code nor message holds anything that Control said in words, or anything secret. */
export class EnrollError extends Error {
  override readonly name = 'EnrollError';
  readonly kind: EnrollFault;
  /** Snake case: ours, or the `code` of Control's problem. */
  readonly code: string;
  /** What Control asked for, where it asked to be left alone for longer than there was time. */
  readonly retryAfterMs: number | undefined;

  constructor(kind: EnrollFault, code: string, message: string, retryAfterMs?: number) {
    super(message);
    this.kind = kind;
    this.code = code;
    this.retryAfterMs = retryAfterMs;
  }
}
