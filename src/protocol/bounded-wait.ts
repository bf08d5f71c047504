/**
 * Bounds the wait before the next attempt to renew something that ends: staleness, a key, a passport, a run. What
 * answers in a service's place may ask for any wait with `Retry-After`, and the service may be back long before it is over.
 */

export interface Urgency {
  /** Time until the end of what has to be renewed; zero or less when there is nothing usable. */
  readonly leftMs: number;
  /** Time that the renewal takes. */
  readonly renewMs: number;
  /** Maximum wait when less than `renewMs` is left. */
  readonly lateMs: number;
}

/** @param wishedMs the longer one of the backoff and of `Retry-After` */
export function boundedWaitMs(wishedMs: number, { lateMs, leftMs, renewMs }: Urgency): number {
  const spareMs = leftMs - renewMs;
  return Math.min(wishedMs, spareMs > 0 ? spareMs : lateMs);
}
