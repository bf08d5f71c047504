/**
 * The port for tracing a decision; `tracing.ts` exports traces to a collector. A trace never contains a subject, a key
 * or a `jti`.
 */

/** Parts of a decision that are timed separately. */
export type TracedStep = 'pipeline' | 'replay';

export interface TracedDecision {
  readonly decisionId: string;
  readonly outcome: 'allowed' | 'denied' | 'observed';
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

/** Parses the `traceparent` header. Source: W3C Trace Context section 3.2. */

interface Traceparent {
  /** 32 lower-case hexadecimal characters. */
  readonly traceId: string;
  /** ID of the sending span: 16 lower-case hexadecimal characters. */
  readonly spanId: string;
  readonly isSampled: boolean;
}

/** Version ff and all-zero IDs are invalid; future versions may append fields (section 3.2.2). */
const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-.*)?$/;
const VERSION_0_CHARACTERS = 55;
/** Section 3.2.2.5 */
const SAMPLED = 1;

/** @returns undefined for an invalid value */
export function parseTraceparent(value: string | undefined): Traceparent | undefined {
  if (value === undefined) return undefined;
  if (!TRACEPARENT.test(value) || (value.startsWith('00') && value.length > VERSION_0_CHARACTERS))
    return undefined;
  const isSampled = (Number.parseInt(value.slice(53, VERSION_0_CHARACTERS), 16) & SAMPLED) !== 0;
  return { traceId: value.slice(3, 35), spanId: value.slice(36, 52), isSampled };
}
