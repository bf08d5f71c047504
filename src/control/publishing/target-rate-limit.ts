/**
 * Rate limit per target for expensive effects: a whole bundle above its reported revision, or an audit row. An honest
 * target needs few of either. A stolen token could otherwise keep Control busy and make every other target of the site
 * fetch whole bundles.
 */
import { LRUCache } from 'lru-cache';
import { TokenBucket } from '../domain/token-bucket.ts';

const MAX_REMEMBERED = 20_000;
const ALLOWED = { burst: 5, refillMs: 60_000 };

/** Counts for this instance only, so that several instances allow a multiple. */
export class TargetAllowance {
  readonly #buckets = new LRUCache<string, TokenBucket>({ max: MAX_REMEMBERED });

  /** Takes one from the allowance. @returns whether there was one */
  take(targetId: string, nowMs: number): boolean {
    const bucket = this.#buckets.get(targetId) ?? new TokenBucket(ALLOWED);
    this.#buckets.set(targetId, bucket);
    return bucket.take(nowMs);
  }
}
