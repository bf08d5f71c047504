/**
 * Who waits for a decision, as far as a door knows: for how long still, and within which trace.
 * Source: docs/enforcement.md "Overload, limits and time-outs".
 */
import type { DecisionTrace } from '../telemetry/decision-trace.ts';

export interface Asker {
  /** The request has waited so long before anybody looked at it that its answer would come too late. */
  readonly waitedTooLong: boolean;
  /** Undefined unless this request is traced. */
  readonly trace: DecisionTrace | undefined;
  /** W3C `traceparent` that the asking itself came with, beside the request's own. */
  traceparent(): string | undefined;
  /** Whether the asker has given up by now, or its deadline has passed: no answer reaches it any more. */
  isGone(): boolean;
}
