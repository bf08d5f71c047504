/**
 * Deadline and trace context of the pending call.
 * Source: docs/operate/enforcement.md "Overload, limits and time-outs".
 */
import type { DecisionTrace } from '../telemetry/decision-trace.ts';

export interface CallContext {
  /** The request waited in a queue for so long that its answer would come too late. */
  readonly waitedTooLong: boolean;
  /** Undefined unless this request is traced. */
  readonly trace: DecisionTrace | undefined;
  /** W3C `traceparent` of the call itself, beside the request's own. */
  traceparent(): string | undefined;
  /** Whether the caller cancelled the call, or its deadline has passed: an answer can no longer reach it. */
  isGone(): boolean;
}
