/**
 * The in-memory replay store, for a site with a single verifier process (`single_verifier: true`). Synchronous. It
 * rejects what it cannot store; it never evicts.
 * Source: docs/design/protocol.md "Replay".
 */
import { DEFAULT_SKEW_SECONDS, MAX_PROOF_TTL_SECONDS } from '../../protocol/limits.ts';
import type { PersistedFence } from './persisted-fence.ts';
import { Quota } from './quota.ts';
import { type QuotaCells, RecordTable } from './record-table.ts';
import {
  CONSUMED,
  DEFAULT_HOLDER_QUOTA_PER_MINUTE,
  DEFAULT_SUBJECT_QUOTA_PER_MINUTE,
  REPLAYED,
  type ReplayClaim,
  type ReplayFence,
  type ReplayFenceReason,
  type ReplayHealth,
  type ReplayOutcome,
  type ReplayStore,
  systemClockSeconds,
  UNAVAILABLE,
} from './store.ts';

const DEFAULT_MAX_RECORDS = 1_000_000;
/** A caller within its quota leaves at least the same share for all others. */
const MOST_SHARE_OF_ONE_HOLDER = 0.5;
/** However many keys a caller has, a quarter is left for all others. */
const MOST_SHARE_OF_ONE_SUBJECT = 0.75;

/** Purge steps for each request. A request adds one record, so a few steps always keep up. */
const PURGE_STEPS = 8;
/** Purge steps for a request that finds the store full, well under a millisecond. */
const PURGE_STEPS_WHEN_FULL = 2048;

/** How far the persisted fence is written ahead of the latest acceptable issued-at, and the rest at which it is rewritten. */
const RESERVE_SECONDS = 8;
const LEAST_RESERVE_SECONDS = 3;
const RESERVE_INTERVAL_MS = 1000;
/** A fence further ahead was written while the clock was ahead, and is lowered again. */
const MOST_RESERVE_SECONDS = 60;

export interface MemoryReplayStoreOptions {
  /** Maximum number of stored identifiers; about 50 bytes each. Default 1,000,000. */
  readonly maxRecords?: number;
  /** Maximum number of identifiers that one holder may add in a minute. Default 600,000. */
  readonly holderQuotaPerMinute?: number;
  /** The same for all holders of one issuer and subject. Default 1,200,000. */
  readonly subjectQuotaPerMinute?: number;
  /** Survives a restart. Without it only the clock separates the proofs of earlier runs; for tests. */
  readonly persistedFence?: PersistedFence | undefined;
  /** The site's skew, from which `health` computes the fence at the start. Until it is known, 5. */
  readonly expectedSkewSeconds?: () => number | undefined;
  /** The wall clock in seconds since the epoch; fractions are cut off. Default: the system's. */
  readonly clockSeconds?: () => number;
}

/**
 * Creates the store. It rejects proofs (`fenced`) that were issued up to now plus skew, or up to the persisted fence if
 * that is later.
 */
export function createMemoryReplayStore(options: MemoryReplayStoreOptions = {}): ReplayStore {
  return new MemoryReplayStore(options);
}

class MemoryReplayStore implements ReplayStore {
  readonly name = 'memory';
  readonly #clockSeconds: () => number;
  readonly #expectedSkewSeconds: () => number | undefined;
  readonly #startSeconds: number;
  readonly #records: RecordTable;
  readonly #holderQuota: Quota;
  readonly #subjectQuota: Quota;
  readonly #persisted: PersistedFence | undefined;
  readonly #reserving: NodeJS.Timeout | undefined;
  /** Records of proofs consumed up to this moment, by this verifier's clock, may be missing. */
  #epochSeconds: number;
  /** Largest skew in a claim so far; 0 before the first one. */
  #largestSkewSeconds = 0;
  /** Latest clock at which a proof was recorded; 0 before that. */
  #lastRecordedSeconds = 0;
  /** Latest `issued-at` that was consumed; 0 before that. */
  #lastIssuedSeconds = 0;
  #isClosed = false;

  constructor(options: MemoryReplayStoreOptions) {
    const maxRecords = options.maxRecords ?? DEFAULT_MAX_RECORDS;
    this.#clockSeconds = options.clockSeconds ?? systemClockSeconds;
    this.#expectedSkewSeconds = options.expectedSkewSeconds ?? (() => undefined);
    this.#startSeconds = Math.floor(this.#clockSeconds());
    this.#epochSeconds = this.#startSeconds;
    this.#holderQuota = new Quota({
      maxPerMinute: options.holderQuotaPerMinute ?? DEFAULT_HOLDER_QUOTA_PER_MINUTE,
      maxRemembered: Math.ceil(maxRecords * MOST_SHARE_OF_ONE_HOLDER),
    });
    this.#subjectQuota = new Quota({
      maxPerMinute: options.subjectQuotaPerMinute ?? DEFAULT_SUBJECT_QUOTA_PER_MINUTE,
      maxRemembered: Math.ceil(maxRecords * MOST_SHARE_OF_ONE_SUBJECT),
    });
    this.#records = new RecordTable(maxRecords, this.#epochSeconds, ({ holder, subject }) => {
      this.#holderQuota.forget(holder);
      this.#subjectQuota.forget(subject);
    });
    this.#persisted = options.persistedFence;
    if (this.#persisted === undefined) return;
    this.#reserve();
    this.#reserving = setInterval(() => this.#reserve(), RESERVE_INTERVAL_MS).unref();
  }

  consume(claim: ReplayClaim): ReplayOutcome {
    if (this.#isClosed) return UNAVAILABLE.store;
    const records = this.#records;
    const nowSeconds = claim.nowSeconds;
    if (claim.skewSeconds > this.#largestSkewSeconds) this.#raiseSkew(claim);
    records.purge(nowSeconds, records.isFull ? PURGE_STEPS_WHEN_FULL : PURGE_STEPS);

    // Comparisons are written so that a value that is not a number leads to a rejection.
    const keepUntilSeconds = claim.expiresAtSeconds + 3 * this.#largestSkewSeconds + 2;
    if (!(claim.issuedAtSeconds > this.#fencedThroughSeconds)) return UNAVAILABLE.fenced;
    // Its record may have been added and purged already, before the clock went back.
    if (!(keepUntilSeconds > records.horizonSeconds)) return UNAVAILABLE.fenced;
    if (!(keepUntilSeconds > nowSeconds)) return UNAVAILABLE.fenced;

    if (records.has(claim.identifier)) return REPLAYED;
    if (records.isFull) return UNAVAILABLE.store;
    if (!this.#mayOutliveRestart(claim.issuedAtSeconds)) return UNAVAILABLE.store;
    const cells = this.#takeQuota(claim);
    if (cells === undefined) return UNAVAILABLE.quota;
    records.addSought(keepUntilSeconds, cells);
    if (nowSeconds > this.#lastRecordedSeconds) this.#lastRecordedSeconds = nowSeconds;
    if (claim.issuedAtSeconds > this.#lastIssuedSeconds) this.#lastIssuedSeconds = claim.issuedAtSeconds;
    return CONSUMED;
  }

  /** Counts the claim against both quotas, or against neither when one of them is used up. */
  #takeQuota({ holderThumbprint, nowSeconds, subjectHash }: ReplayClaim): QuotaCells | undefined {
    const holder = this.#holderQuota.cellOf(holderThumbprint);
    const subject = this.#subjectQuota.cellOf(subjectHash);
    const hasRoom =
      this.#holderQuota.hasRoom(holder, nowSeconds) && this.#subjectQuota.hasRoom(subject, nowSeconds);
    if (!hasRoom) return undefined;
    this.#holderQuota.take(holder, nowSeconds);
    this.#subjectQuota.take(subject, nowSeconds);
    return { holder, subject };
  }

  get #fencedThroughSeconds(): number {
    const own = this.#epochSeconds + this.#largestSkewSeconds;
    return Math.max(own, this.#persisted?.startsThroughSeconds ?? 0);
  }

  /** Whether a start after a crash now would reject a proof with this issued-at. If not, starts to persist a higher fence. */
  #mayOutliveRestart(issuedAtSeconds: number): boolean {
    if (this.#persisted === undefined || issuedAtSeconds <= this.#persisted.throughSeconds) return true;
    this.#reserve();
    return false;
  }

  /** Keeps the persisted fence a little ahead of every acceptable proof. */
  #reserve(): void {
    const persisted = this.#persisted;
    if (persisted === undefined) return;
    const nowSeconds = Math.floor(this.#clockSeconds());
    const skewSeconds = Math.max(this.#largestSkewSeconds, this.#skewSeconds);
    // A valid proof was issued no later than this.
    const latestSeconds = Math.max(nowSeconds + skewSeconds, this.#lastIssuedSeconds);
    const reserveSeconds = persisted.throughSeconds - latestSeconds;
    if (reserveSeconds < LEAST_RESERVE_SECONDS || reserveSeconds > MOST_RESERVE_SECONDS) {
      persisted.keep(latestSeconds + RESERVE_SECONDS);
    }
  }

  /**
   * Records kept for the smaller skew expire while their proofs are valid under the larger one, so everything consumed
   * so far is fenced. Without any record, nothing expires.
   */
  #raiseSkew(claim: ReplayClaim): void {
    if (this.#lastRecordedSeconds > 0) {
      this.#epochSeconds = Math.max(this.#epochSeconds, this.#lastRecordedSeconds, claim.nowSeconds);
    }
    this.#largestSkewSeconds = claim.skewSeconds;
  }

  get #skewSeconds(): number {
    return this.#expectedSkewSeconds() ?? DEFAULT_SKEW_SECONDS;
  }

  health(): ReplayHealth {
    if (this.#isClosed) return { ready: false, problem: 'the embedded replay store is closed' };
    const persisted = this.#persisted;
    if (persisted?.startsThroughSeconds === Number.POSITIVE_INFINITY) {
      return { ready: false, problem: persisted.problem ?? 'the persisted fence cannot be read' };
    }
    const nowSeconds = Math.floor(this.#clockSeconds());
    this.#records.purge(nowSeconds, PURGE_STEPS_WHEN_FULL);
    const fence = this.#fenceAt(nowSeconds);
    if (fence !== undefined) return { ready: false, problem: fenceProblem(fence), fence };
    if (this.#records.isFull) {
      const { size } = this.#records;
      return { ready: false, problem: `the embedded replay store is full (${size} identifiers)` };
    }
    if (persisted?.problem === undefined) return { ready: true };
    // Proofs up to the persisted fence are still accepted.
    return nowSeconds > persisted.throughSeconds
      ? { ready: false, problem: persisted.problem }
      : { ready: true, warning: persisted.problem };
  }

  /** The fence that a proof signed now would hit; with several, the longest. */
  #fenceAt(nowSeconds: number): ReplayFence | undefined {
    const startSeconds = this.#startSeconds + this.#skewSeconds;
    const keptSeconds = this.#persisted?.startsThroughSeconds ?? 0;
    // If a proof signed now had been consumed while the clock was ahead, its record would be gone by now.
    const forgottenSeconds =
      this.#records.horizonSeconds - MAX_PROOF_TTL_SECONDS - 3 * this.#largestSkewSeconds - 2;
    const isOfThisClock = keptSeconds <= startSeconds + MOST_RESERVE_SECONDS;
    const fences: readonly (readonly [ReplayFenceReason, number])[] = [
      ['start', startSeconds],
      [isOfThisClock ? 'start' : 'clock', keptSeconds],
      ['skew_raised', this.#epochSeconds + this.#largestSkewSeconds],
      ['clock', forgottenSeconds],
    ];
    const [why, throughSeconds] = fences.reduce((most, one) => (one[1] > most[1] ? one : most));
    const secondsLeft = throughSeconds - nowSeconds + 1;
    return secondsLeft > 0 ? { why, secondsLeft } : undefined;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#reserving);
    await this.#persisted?.close(this.#lastIssuedSeconds);
  }
}

const FENCE_CAUSES: { readonly [W in ReplayFenceReason]?: string } = {
  start: 'has just started (start)',
  skew_raised: "met a larger skew in the site's bundle (skew_raised)",
  clock: 'remembers a clock that was ahead of this one (clock)',
};

function fenceProblem({ secondsLeft, why }: ReplayFence): string {
  const cause = FENCE_CAUSES[why] ?? 'is fenced';
  return `the embedded replay store ${cause}: it refuses proofs for another ${secondsLeft} s`;
}
