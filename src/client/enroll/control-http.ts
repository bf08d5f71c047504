/**
 * HTTP port from a workload's tool to Control. For retries it distinguishes a response, a request that was never sent, and
 * one that Control may have processed.
 */

export interface ControlRequest {
  readonly method: 'GET' | 'POST';
  /** Path on Control, below its base URL; begins with `/v1/`. */
  readonly path: string;
  readonly authorization: string | undefined;
  /** JSON text. */
  readonly body: string | undefined;
  /** Timeout of the whole exchange, including the response body. */
  readonly timeoutMs: number;
  /** Cancels the request. */
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
  /** No connection. `cause`: the system error code, such as `ECONNREFUSED`. */
  | { readonly kind: 'not_sent'; readonly cause: string }
  /** Control may have processed the request. */
  | { readonly kind: 'no_answer'; readonly cause: NoAnswerCause };

export type NoAnswerCause = 'timed_out' | 'stopped' | 'connection_lost' | 'answer_invalid';

export interface ControlHttp {
  /** Sends the request once and follows no redirect. Never rejects. */
  exchange(request: ControlRequest): Promise<ControlReply>;
  close(): Promise<void>;
}
