/**
 * What one decision tells a tracer, whoever that is; `tracing.ts` is the one that exports to a collector. It never
 * learns of a subject, a key or a `jti`.
 */

/** Parts of a decision that are timed on their own. */
export type TracedStep = 'pipeline' | 'replay';

export interface TracedDecision {
  readonly decisionId: string;
  readonly outcome: 'allowed' | 'denied';
  readonly reason?: string | undefined;
  readonly detail?: string | undefined;
  readonly routeId?: string | undefined;
  readonly bundleRevision?: number | undefined;
}

/** Times are milliseconds of `performance.now()`. Nothing here throws. */
export interface DecisionTrace {
  stepTook(step: TracedStep, startedMs: number, endedMs: number): void;
  decided(decision: TracedDecision): void;
}

/** Begins the span of a decision. */
export interface DecisionTracer {
  /**
   * @param parents W3C `traceparent` values, the nearest caller's first; the first that is valid counts
   * @returns undefined where the parent is not sampled, or there is none
   */
  begin(...parents: readonly (string | undefined)[]): DecisionTrace | undefined;
  /** Exports what waits, for a few seconds at most. Never rejects. */
  close(): Promise<void>;
}
