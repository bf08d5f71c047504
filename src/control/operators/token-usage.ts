/**
 * Records the last use of access tokens in memory and writes it in batches, so that a request costs no write. A crash
 * loses at most one interval.
 */
import type { ControlStore } from '../store/port.ts';

export interface TokenUsage {
  note(tokenId: string): void;
  flush(): Promise<void>;
}

export function createTokenUsage(store: ControlStore, nowMs: () => number): TokenUsage {
  let used = new Map<string, number>();
  return {
    note(tokenId) {
      used.set(tokenId, nowMs());
    },
    async flush() {
      if (used.size === 0) return;
      const noted = used;
      used = new Map();
      await store.housekeep(undefined, (tx) => tx.operators.noteTokensUsed(noted));
    },
  };
}
