/** What this verifier knows of the fences in Redis: one for each shard, as the last look at its epoch found it. */
import type { ReplayFence, ReplayFenceReason, ReplayObserver } from './store.ts';
import { REPLAY_FENCE_REASONS } from './store.ts';

/** What the prepare script answers. */
export interface ReplayEpoch {
  /** The server's clock; all are seconds since the epoch. */
  readonly serverSeconds: number;
  /** 0: the clocks are too far apart, and nothing was looked at. */
  readonly momentSeconds: number;
  readonly largestSkewSeconds: number;
  readonly why: ReplayFenceReason;
  /** Proofs that expire before are refused. */
  readonly lowestExpirySeconds: number;
}

/** What a proof lives for unless its signer says otherwise. Source: docs/protocol.md "Transcript". */
const DEFAULT_PROOF_SECONDS = 60;

interface ShardFence {
  readonly momentSeconds: number;
  /** The last issued-at that is refused. */
  readonly throughSeconds: number;
  readonly why: ReplayFenceReason;
  /** By the server's clock at the look that found it: a clock that goes back puts it up again. */
  readonly wasUp: boolean;
}

/** With the code that metric and log have, and what to do. */
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
  /** The last issued-at that is refused by what was found when each shard was looked at for the first time. */
  #startsThroughSeconds = 0;

  constructor(observer: ReplayObserver | undefined) {
    this.#observer = observer;
  }

  /** Takes what one look at a primary found of its shards; a fence that they have in common is told once. */
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

  /** Whether the shard was looked at. */
  isKnown(shard: number): boolean {
    return this.#fences[shard] !== undefined;
  }

  /** Whether a fence is up that was there when this process came. */
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

/** The answer of the prepare script; undefined when it is none. */
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

/** A moment that has changed is a fence that went up since, though it may be down again. */
function hasGoneUp(before: ShardFence | undefined, fence: ShardFence): boolean {
  if (before === undefined) return fence.wasUp;
  if (before.momentSeconds !== fence.momentSeconds) return true;
  if (!fence.wasUp) return false;
  return !before.wasUp || (before.why !== fence.why && before.throughSeconds < fence.throughSeconds);
}

function fenceOf(epoch: ReplayEpoch, skewSeconds: number): ShardFence {
  const { lowestExpirySeconds, momentSeconds } = epoch;
  const byMoment = momentSeconds + 2 * Math.max(epoch.largestSkewSeconds, skewSeconds);
  // Deleted up to there, by a clock that has gone back since.
  const byDeletion = lowestExpirySeconds - DEFAULT_PROOF_SECONDS - 1;
  const throughSeconds = Math.max(byMoment, byDeletion);
  return {
    momentSeconds,
    throughSeconds,
    why: byDeletion > byMoment ? 'clock' : epoch.why,
    wasUp: throughSeconds >= epoch.serverSeconds,
  };
}
