/** A verifier whose dependencies record their calls. */
import type { Snapshot } from '../../src/bundle/compile/snapshot.ts';
import type { CallContext } from '../../src/process/connections/call-context.ts';
import type { DecisionEvent } from '../../src/process/telemetry/decision-event.ts';
import type { Decision } from '../../src/verifier/decision/decide.ts';
import type { RequestFacts } from '../../src/verifier/decision/facts/request-facts.ts';
import {
  type AwaitedBody,
  createVerifier,
  type Verifier,
  type VerifierOptions,
} from '../../src/verifier/verifier.ts';
import { createVerifierMetrics } from '../../src/verifier/verifier-metrics.ts';
import { NOW_SECONDS } from './bundle-content.ts';
import { type RecordingReplayStore, recordingReplayStore } from './replay-store.ts';

export const REALTIME_STALENESS_SECONDS = 10;

export interface TestVerifier {
  readonly verifier: Verifier;
  readonly events: DecisionEvent[];
  readonly internalErrors: unknown[];
  readonly store: RecordingReplayStore;
}

export interface TestVerifierOptions extends Partial<Omit<VerifierOptions, 'replayStore'>> {
  readonly snapshot?: Snapshot | undefined;
  readonly nowSeconds?: number;
  readonly store?: RecordingReplayStore;
}

/** One for all: each would watch the process's garbage collector and event loop. */
const metrics = createVerifierMetrics(() => undefined);

export function createTestVerifier(options: TestVerifierOptions): TestVerifier {
  const { nowSeconds = NOW_SECONDS, snapshot, store = recordingReplayStore(nowSeconds), ...others } = options;
  const events: DecisionEvent[] = [];
  const internalErrors: unknown[] = [];
  const verifier = createVerifier({
    currentSnapshot: () => snapshot,
    replayStore: store,
    auditSink: { record: (event) => events.push(event) > 0, close: async () => undefined },
    auditMode: 'best_effort',
    metrics,
    nowMs: () => nowSeconds * 1000 + 999,
    realtimeStalenessSeconds: REALTIME_STALENESS_SECONDS,
    externalOrigin: undefined,
    maxInFlight: 100,
    onInternalError: (error) => internalErrors.push(error),
    ...others,
  });
  return { verifier, events, internalErrors, store };
}

/** The answer where the replay store answers at once. */
export function checkNow(verifier: Verifier, facts: RequestFacts, call?: CallContext): Decision {
  const decision = verifier.check(facts, call);
  if (decision instanceof Promise) throw new Error('the verifier did not answer at once');
  return decision;
}

/** `allowed`, `awaited`, or `reason/detail status`. */
export function outcomeOf(decision: Decision | AwaitedBody): string {
  if (decision.kind !== 'denied') return decision.kind;
  const { detail, reason, status } = decision.denial;
  return `${reason}${detail === undefined ? '' : `/${detail}`} ${status}`;
}
