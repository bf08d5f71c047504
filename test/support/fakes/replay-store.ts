/** Replay stores that record their calls, or give the answers that a test wants. */
import { createMemoryReplayStore } from '../../../src/verifier/replay/memory.ts';
import type { ReplayClaim, ReplayOutcome, ReplayStore } from '../../../src/verifier/replay/store.ts';

export interface RecordingReplayStore extends ReplayStore {
  /** Every claim that reached the store. */
  readonly claims: ReplayClaim[];
}

/** A replay store that gives the scripted answers and records its claims. */
export function scriptedReplayStore(
  answer: (claim: ReplayClaim) => ReplayOutcome | Promise<ReplayOutcome>,
): RecordingReplayStore {
  const claims: ReplayClaim[] = [];
  return {
    name: 'scripted',
    claims,
    consume(claim) {
      claims.push(claim);
      return answer(claim);
    },
    health: () => ({ ready: true }),
    close: async () => undefined,
  };
}

/** The embedded store, started long enough before `nowSeconds` not to fence, and recorded. */
export function recordingReplayStore(nowSeconds: number, maxRecords = 1000): RecordingReplayStore {
  const store = createMemoryReplayStore({ clockSeconds: () => nowSeconds - 3600, maxRecords });
  return scriptedReplayStore((claim) => store.consume(claim));
}
