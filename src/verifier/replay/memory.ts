/**
 * The embedded replay store: for the one verifier process of a site (`single_verifier: true`).
 * Answers synchronously. What it cannot remember it refuses; it never evicts.
 * Source: docs/protocol.md "Replay".
 */
import { DEFAULT_HOLDER_QUOTA_PER_MINUTE, DEFAULT_SKEW_SECONDS, systemClockSeconds } from './defaults.ts';
import { HolderQuota } from './holder-quota.ts';
import { RecordTable } from './record-table.ts';
import {
  CONSUMED,
  REPLAYED,
  type ReplayClaim,
  type ReplayHealth,
  type ReplayOutcome,
  type ReplayStore,
  UNAVAILABLE,
} from './store.ts';

export const DEFAULT_MAX_RECORDS = 1_000_000;

/** Purge steps a request: it adds one record, so a few steps always catch up. */
const PURGE_STEPS = 8;
/** Purge steps of a request that finds the store full, well under a millisecond. */
const PURGE_STEPS_WHEN_FULL = 2048;

export interface MemoryReplayStoreOptions {
  /** Most identifiers remembered at a time; 36 bytes each. Default 1,000,000. */
  readonly maxRecords?: number;
  /** Most identifiers that one holder may have remembered in a minute. Default 600,000. */
  readonly holderQuotaPerMinute?: number;
  /** The site's skew, with which `health` reckons the start's fence: it may be known only later. Until then 5. */
  readonly expectedSkewSeconds?: () => number | undefined;
  /** The wall clock in seconds since the epoch; fractions are cut off. Default: the system's. */
  readonly clockSeconds?: () => number;
}

/** Creates the store; proofs issued up to now plus skew are refused from then on (`fenced`). */
export function createMemoryReplayStore(options: MemoryReplayStoreOptions = {}): ReplayStore {
  return new MemoryReplayStore(options);
}

class MemoryReplayStore implements ReplayStore {
  readonly name = 'memory';
  readonly #clockSeconds: () => number;
  readonly #expectedSkewSeconds: () => number | undefined;
  readonly #startSeconds: number;
  readonly #records: RecordTable;
  readonly #quota: HolderQuota;
  /** Nothing consumed up to this moment, of this verifier's clock, is sure to be remembered. */
  #epochSeconds: number;
  /** Largest skew that a claim has shown; 0 before the first one. */
  #largestSkewSeconds = 0;
  /** The latest clock at which something was recorded; 0 before that. */
  #lastRecordedSeconds = 0;
  #isClosed = false;

  constructor(options: MemoryReplayStoreOptions) {
    this.#clockSeconds = options.clockSeconds ?? systemClockSeconds;
    this.#expectedSkewSeconds = options.expectedSkewSeconds ?? (() => undefined);
    this.#startSeconds = Math.floor(this.#clockSeconds());
    this.#epochSeconds = this.#startSeconds;
    this.#records = new RecordTable(options.maxRecords ?? DEFAULT_MAX_RECORDS, this.#epochSeconds);
    this.#quota = new HolderQuota(options.holderQuotaPerMinute ?? DEFAULT_HOLDER_QUOTA_PER_MINUTE);
  }

  consume(claim: ReplayClaim): ReplayOutcome {
    if (this.#isClosed) return UNAVAILABLE.store;
    const records = this.#records;
    const nowSeconds = claim.nowSeconds;
    if (claim.skewSeconds > this.#largestSkewSeconds) this.#raiseSkew(claim);
    records.purge(nowSeconds, records.isFull ? PURGE_STEPS_WHEN_FULL : PURGE_STEPS);

    // Comparisons are written so that a value that is no number refuses.
    const keepUntilSeconds = claim.expiresAtSeconds + 3 * this.#largestSkewSeconds + 2;
    const fencedThroughSeconds = this.#epochSeconds + this.#largestSkewSeconds;
    if (!(claim.issuedAtSeconds > fencedThroughSeconds)) return UNAVAILABLE.fenced;
    // Its record may have been made and purged already, before the clock went back.
    if (!(keepUntilSeconds > records.horizonSeconds)) return UNAVAILABLE.fenced;
    if (!(keepUntilSeconds > nowSeconds)) return UNAVAILABLE.fenced;

    if (records.has(claim.identifier)) return REPLAYED;
    if (records.isFull) return UNAVAILABLE.store;
    if (!this.#quota.take(claim.holderThumbprint, nowSeconds)) return UNAVAILABLE.quota;
    records.addSought(keepUntilSeconds);
    if (nowSeconds > this.#lastRecordedSeconds) this.#lastRecordedSeconds = nowSeconds;
    return CONSUMED;
  }

  /**
   * Records kept for the smaller skew lapse while their proofs are good for the larger one: everything
   * consumed so far is fenced. Where nothing was recorded yet, nothing lapses.
   */
  #raiseSkew(claim: ReplayClaim): void {
    if (this.#lastRecordedSeconds > 0) {
      this.#epochSeconds = Math.max(this.#epochSeconds, this.#lastRecordedSeconds, claim.nowSeconds);
    }
    this.#largestSkewSeconds = claim.skewSeconds;
  }

  health(): ReplayHealth {
    if (this.#isClosed) return { ready: false, problem: 'the embedded replay store is closed' };
    const nowSeconds = Math.floor(this.#clockSeconds());
    const readyAfterSeconds = this.#startSeconds + (this.#expectedSkewSeconds() ?? DEFAULT_SKEW_SECONDS);
    if (nowSeconds <= readyAfterSeconds) {
      const seconds = readyAfterSeconds - nowSeconds + 1;
      return {
        ready: false,
        problem: `the embedded replay store has just started: it refuses proofs for another ${seconds} s`,
      };
    }
    this.#records.purge(nowSeconds, PURGE_STEPS_WHEN_FULL);
    if (this.#records.isFull) {
      return {
        ready: false,
        problem: `the embedded replay store is full (${this.#records.size} identifiers)`,
      };
    }
    return { ready: true };
  }

  async close(): Promise<void> {
    this.#isClosed = true;
  }
}
