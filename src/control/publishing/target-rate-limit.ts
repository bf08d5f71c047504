/**
 * Rate limit per target for expensive effects: a whole bundle above its reported revision, or an audit row. An honest
 * target needs few of either. A stolen token could otherwise keep Control busy and make every other target of the site
 * fetch whole bundles.
 */
import { LRUCache } from 'lru-cache';

const MAX_REMEMBERED = 20_000;
/** Burst, and refill of one per minute. */
const BURST = 5;
const REFILL_MS = 60_000;

interface Account {
  readonly credit: number;
  readonly countedAtMs: number;
}

/** Counts for this instance only, so that several instances allow a multiple. */
export class TargetAllowance {
  readonly #accounts = new LRUCache<string, Account>({ max: MAX_REMEMBERED });

  /** Takes one from the allowance. @returns whether there was one */
  take(targetId: string, nowMs: number): boolean {
    const { credit, countedAtMs } = this.#accounts.get(targetId) ?? { credit: BURST, countedAtMs: nowMs };
    // A clock that was set back adds nothing.
    const elapsedMs = Math.max(0, nowMs - countedAtMs);
    const available = Math.min(BURST, credit + elapsedMs / REFILL_MS);
    const isAllowed = available >= 1;
    this.#accounts.set(targetId, { credit: isAllowed ? available - 1 : available, countedAtMs: nowMs });
    return isAllowed;
  }
}
