/**
 * The port for tracing a decision; `tracing.ts` exports traces to a collector. A trace never contains a subject, a key
 * or a `jti`.
 */

/** Parts of a decision that are timed separately. */
export type TracedStep = 'pipeline' | 'replay';

export interface TracedDecision {
  readonly decisionId: string;
  readonly outcome: 'allowed' | 'denied';
  readonly reason?: string | undefined;
  readonly detail?: string | undefined;
  readonly routeId?: string | undefined;
  readonly bundleRevision?: number | undefined;
}

/** Times are milliseconds of `performance.now()`. No method throws. */
export interface DecisionTrace {
  stepTook(step: TracedStep, startedMs: number, endedMs: number): void;
  decided(decision: TracedDecision): void;
}

/** Starts the span of a decision. */
export interface DecisionTracer {
  /**
   * @param parents W3C `traceparent` values, the nearest caller's first; the first valid one is used
   * @returns undefined when the parent is not sampled, or there is none
   */
  begin(...parents: readonly (string | undefined)[]): DecisionTrace | undefined;
  /** Exports queued spans, for a few seconds at most. Never rejects. */
  close(): Promise<void>;
}
