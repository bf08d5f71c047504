/**
 * How often one target may cause what is dear: a whole bundle above where it says it stands, a row of the audit trail.
 * An honest one needs either a few times in its life; one in other hands could keep Control busy with nothing else, and
 * have every other target of the site fetch one whole bundle after the other.
 */
import { LRUCache } from 'lru-cache';

const MAX_REMEMBERED = 20_000;
/** So many at once, and another one each minute. */
const BURST = 5;
const REFILL_MS = 60_000;

interface Account {
  readonly credit: number;
  readonly countedAtMs: number;
}

/** Of this instance: several give a target as many times that. */
export class TargetAllowance {
  readonly #accounts = new LRUCache<string, Account>({ max: MAX_REMEMBERED });

  /** Takes one, if there is one. */
  take(targetId: string, nowMs: number): boolean {
    const { credit, countedAtMs } = this.#accounts.get(targetId) ?? { credit: BURST, countedAtMs: nowMs };
    // A clock that was set back adds nothing.
    const elapsedMs = Math.max(0, nowMs - countedAtMs);
    const available = Math.min(BURST, credit + elapsedMs / REFILL_MS);
    const isThere = available >= 1;
    this.#accounts.set(targetId, { credit: isThere ? available - 1 : available, countedAtMs: nowMs });
    return isThere;
  }
}
