/** A verifier with the bundle, clock and store of the current vector. */
import { compileBundle } from '../../src/bundle/compile/compile.ts';
import type { Snapshot } from '../../src/bundle/compile/snapshot.ts';
import { asContent } from '../../src/bundle/format/shape.ts';
import { createMemoryReplayStore } from '../../src/verifier/replay/memory.ts';
import type { ReplayStore } from '../../src/verifier/replay/store.ts';
import { createVerifier, type Verifier } from '../../src/verifier/verifier.ts';
import { createVerifierMetrics, type VerifierMetrics } from '../../src/verifier/verifier-metrics.ts';
import { contentOf } from '../support/protocol/published-vectors.ts';
import type { ReplayVector } from './make/format.ts';

export interface Bench {
  readonly verifier: Verifier;
  readonly metrics: VerifierMetrics;
  /** Faults of the verifier's own; none is right. */
  readonly internalErrors: unknown[];
  set(circumstances: Circumstances): Promise<void>;
}

export interface Circumstances {
  /** Null: none is loaded. */
  readonly bundle: string | null;
  readonly nowSeconds: number;
  readonly realtimeStalenessSeconds: number;
  /** Undefined: the one of before. */
  readonly store?: ReplayStore;
}

const LONG_SECONDS = 1_000_000;

/** @param nowSeconds of the first request */
export function storeOf(store: ReplayVector['store'], nowSeconds: number): ReplayStore {
  if (store === null) {
    // The store allocates its memory at once, so it has room for one sequence only.
    return createMemoryReplayStore({ clockSeconds: () => nowSeconds - LONG_SECONDS, maxRecords: 100 });
  }
  return createMemoryReplayStore({
    clockSeconds: () => store.started_at,
    maxRecords: store.max_records,
    holderQuotaPerMinute: store.holder_quota_per_minute,
  });
}

export function createBench(): Bench {
  const metrics = createVerifierMetrics(() => undefined);
  const internalErrors: unknown[] = [];
  let snapshot: Snapshot | undefined;
  let store: ReplayStore = storeOf(null, LONG_SECONDS * 2);
  let nowSeconds = 0;
  let realtimeStalenessSeconds = 0;
  const options = {
    currentSnapshot: () => snapshot,
    replayStore: {
      ...store,
      consume: (claim: Parameters<ReplayStore['consume']>[0]) => store.consume(claim),
    },
    auditSink: { record: () => true, close: async () => undefined },
    auditMode: 'required' as const,
    metrics,
    nowMs: () => nowSeconds * 1000 + 999,
    get realtimeStalenessSeconds() {
      return realtimeStalenessSeconds;
    },
    externalOrigin: undefined,
    maxInFlight: 10,
    onInternalError: (error: unknown) => void internalErrors.push(error),
  };
  return {
    verifier: createVerifier(options),
    metrics,
    internalErrors,
    set: async (circumstances) => {
      snapshot = circumstances.bundle === null ? undefined : await snapshotOf(circumstances.bundle);
      nowSeconds = circumstances.nowSeconds;
      realtimeStalenessSeconds = circumstances.realtimeStalenessSeconds;
      store = circumstances.store ?? store;
    },
  };
}

/** Compiled once each: a key costs a millisecond. */
const snapshots = new Map<string, Promise<Snapshot>>();

function snapshotOf(name: string): Promise<Snapshot> {
  const known = snapshots.get(name) ?? compile(name);
  snapshots.set(name, known);
  return known;
}

function compile(name: string): Promise<Snapshot> {
  const content = asContent('bundle', contentOf(name), name);
  // No decision uses the head.
  return compileBundle(content, { file: name, head: 'A'.repeat(43) });
}
