/**
 * The port through which a workload's tool speaks to Control. It tells apart what matters for asking again: an answer, a
 * request that surely never left, and one that may have been carried out.
 */

export interface ControlRequest {
  readonly method: 'GET' | 'POST';
  /** Path on Control, below its base URL; begins with `/v1/`. */
  readonly path: string;
  readonly authorization: string | undefined;
  /** JSON text. */
  readonly body: string | undefined;
  /** For the whole exchange, the answer's body included. */
  readonly timeoutMs: number;
  /** Gives up at once. */
  readonly stop: AbortSignal;
}

export type ControlReply =
  | {
      readonly kind: 'answer';
      readonly statusCode: number;
      /** Media type, lower case, without parameters. */
      readonly mediaType: string;
      /** Valid UTF-8 of bounded length. */
      readonly body: string;
      /** From `Retry-After`. */
      readonly retryAfterMs: number | undefined;
    }
  /** No connection was made. `cause`: the system's code, such as `ECONNREFUSED`. */
  | { readonly kind: 'not_sent'; readonly cause: string }
  /** Control may have acted on it. */
  | { readonly kind: 'no_answer'; readonly cause: NoAnswerCause };

export type NoAnswerCause = 'timed_out' | 'stopped' | 'connection_lost' | 'answer_invalid';

export interface ControlHttp {
  /** Sends once, follows no redirect; never rejects. */
  exchange(request: ControlRequest): Promise<ControlReply>;
  close(): Promise<void>;
}
