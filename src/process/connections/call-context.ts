/**
 * Deadline and trace context of the pending call.
 * Source: docs/operate/enforcement.md "Overload, limits and time-outs".
 */
import type { DecisionTrace } from '../telemetry/decision-trace.ts';

export interface CallContext {
  /** Whether the request waited in a queue for so long that its answer would be late. */
  readonly waitedTooLong: boolean;
  /** Undefined unless this request is traced. */
  readonly trace: DecisionTrace | undefined;
  /** W3C `traceparent` of the call itself, besides the request's own. */
  traceparent(): string | undefined;
  /** Whether an answer can no longer reach the caller, because it cancelled the call or the deadline has passed. */
  isGone(): boolean;
}
