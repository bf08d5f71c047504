/** Computes the wait before the next attempt. */

export interface ExponentialWait {
  readonly firstMs: number;
  readonly maxMs: number;
  /** Maximum share of a wait that jitter removes, 0 to 1; default 0.5. */
  readonly jitterShare?: number;
  /** 0 to below 1; default `Math.random`. */
  readonly random?: () => number;
}

/**
 * Exponential backoff: each wait doubles, up to a limit. Jitter shortens it, so that a thousand clients do not return
 * at once to a server that has just recovered. @param failures number of consecutive failures, from 1
 */
export function exponentialWaitMs(
  failures: number,
  { firstMs, jitterShare = 0.5, maxMs, random = Math.random }: ExponentialWait,
): number {
  return Math.min(firstMs * 2 ** (failures - 1), maxMs) * (1 - jitterShare * random());
}

export interface Urgency {
  /** Time until the current credential or state expires; zero or less when none is usable. */
  readonly leftMs: number;
  /** Time that the renewal takes. */
  readonly renewMs: number;
  /** Maximum wait when less than `renewMs` is left. */
  readonly lateMs: number;
}

/**
 * Bounds the wait before an attempt that renews an expiring thing, such as a key, a passport or fresh state. A proxy
 * that answers for a service may request any wait with `Retry-After`, and the service may recover much earlier.
 * @param wishedMs the longer one of the backoff and of `Retry-After`
 */
export function boundedWaitMs(wishedMs: number, { lateMs, leftMs, renewMs }: Urgency): number {
  const spareMs = leftMs - renewMs;
  return Math.min(wishedMs, spareMs > 0 ? spareMs : lateMs);
}
