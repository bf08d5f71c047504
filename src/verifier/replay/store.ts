/**
 * The replay store's port: remembers which `jti`s were presented, atomically.
 * Adapters: `memory.ts` (one verifier process) and `redis.ts`. One shared suite runs against both.
 * Source: specification "Request evaluation order" step 6; docs/protocol.md "Replay".
 */

/** One proof that passed every other check and is about to be consumed. */
export interface ReplayClaim {
  /** base64url SHA-256 over `proofgate-jti-v1`, Auth Site, holder thumbprint and `jti` (43 characters). */
  readonly identifier: string;
  /** RFC 7638 thumbprint of the holder key, base64url (43 characters); quota and hash tag hang on it. */
  readonly holderThumbprint: string;
  /** `issued-at` of the transcript, seconds since the epoch. */
  readonly issuedAtSeconds: number;
  /** `expires-at` of the transcript, seconds since the epoch. */
  readonly expiresAtSeconds: number;
  /** The site's `skew_seconds` in the snapshot that decided, 1 to 60. */
  readonly skewSeconds: number;
  /** The verifier's clock for this decision, whole seconds since the epoch, rounded down. */
  readonly nowSeconds: number;
}

/**
 * Why a store could not say: `store` (down, late, full, misconfigured, clocks apart),
 * `fenced` (the proof is older than what the store is sure to remember), `quota` (the holder's share is used up).
 */
export type ReplayUnavailable = 'store' | 'fenced' | 'quota';

export type ReplayOutcome =
  | { readonly kind: 'consumed' }
  | { readonly kind: 'replayed' }
  | { readonly kind: 'unavailable'; readonly why: ReplayUnavailable };

/**
 * Why a store refuses proofs that were issued up to some moment: what was consumed before it may be forgotten.
 * `start`: the embedded store has just started; `epoch_missing`: Redis knows nothing of earlier consumes
 * (restarted empty, flushed, used for the first time); `primary_changed`: another primary answers, or the same
 * one restarted; `skew_raised`: the site's skew grew; `clock`: a clock jumped,
 * or nobody asked Redis for a while.
 */
export const REPLAY_FENCE_REASONS = [
  'start',
  'epoch_missing',
  'primary_changed',
  'skew_raised',
  'clock',
] as const;
export type ReplayFenceReason = (typeof REPLAY_FENCE_REASONS)[number];

/** A fence that is up: a proof signed at this moment would be refused (`fenced`). */
export interface ReplayFence {
  readonly why: ReplayFenceReason;
  /** Until proofs that are signed then are taken; at least 1. */
  readonly secondsLeft: number;
}

/** Connections of the store by state; none for the embedded one. */
export interface ReplayLinks {
  readonly serving: number;
  readonly unfit: number;
}

/**
 * Whether the store can serve now, for `/readyz` and metrics; `problem` and `warning` are one clear line
 * each, without secrets. `fence` is the one that stays up longest. The fence that a process finds at its start
 * makes it not ready; one that goes up later is a warning: other verifiers could do no more, and refusals that say
 * `fenced` tell callers more than none.
 */
export type ReplayHealth =
  | {
      readonly ready: true;
      readonly warning?: string;
      readonly fence?: ReplayFence;
      readonly links?: ReplayLinks;
    }
  | {
      readonly ready: false;
      readonly problem: string;
      readonly fence?: ReplayFence;
      readonly links?: ReplayLinks;
    };

/** Whoever wants to hear of what happens to a store; must not throw. */
export interface ReplayObserver {
  /** Once for each fence that this process sees go up, its own at the start among them. */
  fenceRaised(why: ReplayFenceReason): void;
}

export interface ReplayStore {
  /** `memory` or `redis`: goes into logs and metrics. */
  readonly name: string;
  /**
   * Consumes the identifier, once. Never throws and never rejects: whatever goes wrong is `unavailable`.
   * A synchronous answer is allowed (the memory store), so that the hot path need not wait for a tick.
   */
  consume(claim: ReplayClaim): ReplayOutcome | Promise<ReplayOutcome>;
  health(): ReplayHealth;
  close(): Promise<void>;
}

export const CONSUMED: ReplayOutcome = { kind: 'consumed' };
export const REPLAYED: ReplayOutcome = { kind: 'replayed' };
export const UNAVAILABLE: { readonly [W in ReplayUnavailable]: ReplayOutcome } = {
  store: { kind: 'unavailable', why: 'store' },
  fenced: { kind: 'unavailable', why: 'fenced' },
  quota: { kind: 'unavailable', why: 'quota' },
};
