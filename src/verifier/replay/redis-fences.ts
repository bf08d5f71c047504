/** The fences in Redis that this verifier knows: one for each shard, as of the last read of its epoch. */
import type { ReplayFence, ReplayFenceReason, ReplayObserver } from './store.ts';
import { REPLAY_FENCE_REASONS } from './store.ts';

/** Reply of the prepare script. */
export interface ReplayEpoch {
  /** The server's clock; all times are seconds since the epoch. */
  readonly serverSeconds: number;
  /** 0 when the clocks are too far apart, and nothing was checked. */
  readonly momentSeconds: number;
  readonly largestSkewSeconds: number;
  readonly why: ReplayFenceReason;
  /** Proofs that expire earlier are rejected. */
  readonly lowestExpirySeconds: number;
}

/** Default lifetime of a proof. Source: docs/design/protocol.md "Transcript". */
const DEFAULT_PROOF_SECONDS = 60;

interface ShardFence {
  readonly momentSeconds: number;
  /** The last issued-at that is rejected. */
  readonly throughSeconds: number;
  readonly why: ReplayFenceReason;
  /** By the server's clock at the time of the look; a clock that goes back raises the fence again. */
  readonly wasUp: boolean;
}

/** Messages with the reason code of metric and log, and what to do. */
const WHY: { readonly [R in ReplayFenceReason]: string } = {
  start: 'this verifier has just started (start), nothing to do but wait',
  epoch_missing: 'Redis was empty, restarted or flushed (epoch_missing), nothing to do but wait',
  primary_changed:
    'another Redis primary answers, or the same one restarted (primary_changed), nothing to do but wait',
  skew_raised: "the site's skew grew (skew_raised), nothing to do but wait",
  clock:
    "Redis' clock jumped, or Redis was asked nothing for more than 10 s (clock), set clocks right if they are not",
};

export class RedisFences {
  readonly #observer: ReplayObserver | undefined;
  readonly #fences: (ShardFence | undefined)[] = [];
  /** The last issued-at that the fences found at the first look at each shard reject. */
  #startsThroughSeconds = 0;

  constructor(observer: ReplayObserver | undefined) {
    this.#observer = observer;
  }

  /** Stores the result of one look at a primary's shards; reports a fence that several of them share once. */
  note(epochs: ReadonlyMap<number, ReplayEpoch>, skewSeconds: number): void {
    const raised = new Set<ReplayFenceReason>();
    for (const [shard, epoch] of epochs) {
      const before = this.#fences[shard];
      const fence = fenceOf(epoch, skewSeconds);
      this.#fences[shard] = fence;
      if (hasGoneUp(before, fence)) raised.add(fence.why);
      if (before === undefined) {
        this.#startsThroughSeconds = Math.max(this.#startsThroughSeconds, fence.throughSeconds);
      }
    }
    for (const why of raised) this.#observer?.fenceRaised(why);
  }

  /** Whether the shard has been checked. */
  isKnown(shard: number): boolean {
    return this.#fences[shard] !== undefined;
  }

  /** Whether a fence that existed when this process started is still up. */
  isStarting(nowSeconds: number): boolean {
    return nowSeconds <= this.#startsThroughSeconds;
  }

  /** The shard's fence, if it is up. */
  up(shard: number, nowSeconds: number): ReplayFence | undefined {
    const fence = this.#fences[shard];
    if (fence === undefined || fence.throughSeconds < nowSeconds) return undefined;
    return { why: fence.why, secondsLeft: fence.throughSeconds - nowSeconds + 1 };
  }
}

export function describeFence({ secondsLeft, why }: ReplayFence): string {
  return `${WHY[why]}: proofs are refused for another ${secondsLeft} s`;
}

/** Parses the reply of the prepare script; undefined for any other reply. */
export function parseEpoch(reply: unknown): ReplayEpoch | undefined {
  if (!Array.isArray(reply)) return undefined;
  const [serverSeconds, momentSeconds, largestSkewSeconds, whyText, lowestExpirySeconds]: readonly unknown[] =
    reply;
  const why = REPLAY_FENCE_REASONS.find((reason) => reason === whyText);
  if (!isCount(serverSeconds) || !isCount(momentSeconds) || why === undefined) return undefined;
  if (!isCount(largestSkewSeconds) || !isCount(lowestExpirySeconds)) return undefined;
  return { serverSeconds, momentSeconds, largestSkewSeconds, why, lowestExpirySeconds };
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}

/** A changed moment means that a fence was raised since, even if it is no longer up. */
function hasGoneUp(before: ShardFence | undefined, fence: ShardFence): boolean {
  if (before === undefined) return fence.wasUp;
  if (before.momentSeconds !== fence.momentSeconds) return true;
  if (!fence.wasUp) return false;
  return !before.wasUp || (before.why !== fence.why && before.throughSeconds < fence.throughSeconds);
}

function fenceOf(epoch: ReplayEpoch, skewSeconds: number): ShardFence {
  const { lowestExpirySeconds, momentSeconds } = epoch;
  const byMoment = momentSeconds + 2 * Math.max(epoch.largestSkewSeconds, skewSeconds);
  // Hashes were deleted up to there, by a clock that has gone back since.
  const byDeletion = lowestExpirySeconds - DEFAULT_PROOF_SECONDS - 1;
  const throughSeconds = Math.max(byMoment, byDeletion);
  return {
    momentSeconds,
    throughSeconds,
    why: byDeletion > byMoment ? 'clock' : epoch.why,
    wasUp: throughSeconds >= epoch.serverSeconds,
  };
}
