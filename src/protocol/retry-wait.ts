/** How long to wait before the next attempt. */

export interface ExponentialWait {
  readonly firstMs: number;
  readonly maxMs: number;
  /** Share of a wait that jitter cuts at most, 0 to 1; default a half. */
  readonly jitterShare?: number;
  /** 0 to below 1; default `Math.random`. */
  readonly random?: () => number;
}

/**
 * Exponential backoff: each wait is twice the one before, up to a limit. Jitter cuts it, so that a thousand clients do
 * not return at once to a server that has just recovered.
 * @param failures in a row, from 1
 */
export function exponentialWaitMs(
  failures: number,
  { firstMs, jitterShare = 0.5, maxMs, random = Math.random }: ExponentialWait,
): number {
  return Math.min(firstMs * 2 ** (failures - 1), maxMs) * (1 - jitterShare * random());
}

export interface Urgency {
  /** Time until the end of what has to be renewed; zero or less when there is nothing usable. */
  readonly leftMs: number;
  /** Time that the renewal takes. */
  readonly renewMs: number;
  /** Maximum wait when less than `renewMs` is left. */
  readonly lateMs: number;
}

/**
 * Bounds the wait before something that ends is renewed: staleness, a key, a passport, a run. What answers in a
 * service's place may ask for any wait with `Retry-After`, and the service may be back long before it is over.
 * @param wishedMs the longer one of the backoff and of `Retry-After`
 */
export function boundedWaitMs(wishedMs: number, { lateMs, leftMs, renewMs }: Urgency): number {
  const spareMs = leftMs - renewMs;
  return Math.min(wishedMs, spareMs > 0 ? spareMs : lateMs);
}
