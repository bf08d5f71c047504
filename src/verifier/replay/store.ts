/**
 * The replay store's port: atomically records each presented `jti`.
 * Adapters: `memory.ts` (one verifier process) and `redis.ts`. One shared suite runs against both.
 * Source: specification "Request evaluation order" step 6; docs/design/protocol.md "Replay".
 */

/** A proof that passed every other check and is about to be consumed. */
export interface ReplayClaim {
  /** base64url SHA-256 over `proofgate-jti-v1`, Auth Site, holder thumbprint and `jti` (43 characters). */
  readonly identifier: string;
  /** RFC 7638 thumbprint of the holder key, base64url (43 characters). Determines quota and hash tag. */
  readonly holderThumbprint: string;
  /** base64url SHA-256 of issuer and subject (43 characters): see `subjectHash`. Determines the other quota. */
  readonly subjectHash: string;
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
 * Why a store cannot decide: `store` (down, late, full, misconfigured, clocks apart), `fenced` (the proof is older than
 * the records that the store is sure to have), `quota` (the quota of the holder, or of issuer and subject, is used up).
 */
type ReplayUnavailable = 'store' | 'fenced' | 'quota';

export type ReplayOutcome =
  | { readonly kind: 'consumed' }
  | { readonly kind: 'replayed' }
  | { readonly kind: 'unavailable'; readonly why: ReplayUnavailable };

/**
 * Why a store rejects proofs that were issued up to some moment: records of earlier consumes may be lost. `start`: the
 * in-memory store has just started; `epoch_missing`: Redis has no record of earlier consumes (restarted empty, flushed,
 * first use); `primary_changed`: another primary answers, or the same one restarted; `skew_raised`: the site's skew
 * grew; `clock`: a clock jumped, or no verifier used Redis for a while.
 */
export const REPLAY_FENCE_REASONS = [
  'start',
  'epoch_missing',
  'primary_changed',
  'skew_raised',
  'clock',
] as const;
export type ReplayFenceReason = (typeof REPLAY_FENCE_REASONS)[number];

/** An active fence: a proof signed now would be rejected (`fenced`). */
export interface ReplayFence {
  readonly why: ReplayFenceReason;
  /** Seconds until newly signed proofs are accepted; at least 1. */
  readonly secondsLeft: number;
}

/** Number of the store's connections by state; none for the in-memory store. */
export interface ReplayLinks {
  readonly serving: number;
  readonly unfit: number;
}

/**
 * Whether the store can serve now, for `/readyz` and metrics. `problem` and `warning` are one line each, without
 * secrets. `fence` is the one that stays up longest. A fence at the start of the process makes it not ready. A later
 * fence is only a warning: other verifiers are affected too, and a denial with `fenced` tells callers more than no
 * answer.
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

/** Receives events of a store; must not throw. */
export interface ReplayObserver {
  /** Called once for each fence that this process sees raised, its own at the start included. */
  fenceRaised(why: ReplayFenceReason): void;
}

export interface ReplayStore {
  /** `memory` or `redis`, for logs and metrics. */
  readonly name: string;
  /**
   * Consumes the identifier, once. Never throws and never rejects: any failure is `unavailable`. A synchronous result
   * is allowed (the in-memory store), so that the hot path need not await.
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

/** Defaults of both replay stores. Source: docs/design/protocol.md "Replay". */

export const DEFAULT_HOLDER_QUOTA_PER_MINUTE = 600_000;
/** For all holders of one issuer and subject: a broker's caller may have several keys, each with a quota of its own. */
export const DEFAULT_SUBJECT_QUOTA_PER_MINUTE = 1_200_000;

/** The system's wall clock, seconds since the epoch, with fractions. */
export function systemClockSeconds(): number {
  return Date.now() / 1000;
}
