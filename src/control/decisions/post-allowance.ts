/** Rate limit of what a target posts about its decisions: as many posts a minute as it can have instances. */
import { LRUCache } from 'lru-cache';
import { ApiProblem } from '../domain/api-problem.ts';
import { TokenBucket } from '../domain/token-bucket.ts';
import { MAX_INSTANCES } from '../publishing/target-instances.ts';

const MAX_REMEMBERED = 20_000;
const ALLOWED = { burst: MAX_INSTANCES, refillMs: 60_000 / MAX_INSTANCES };

/** Counts for this instance of Control only, so that several allow a multiple. */
export class PostAllowance {
  readonly #buckets = new LRUCache<string, TokenBucket>({ max: MAX_REMEMBERED });

  /** @throws ApiProblem `rate_limited` */
  spend(targetId: string, nowMs: number): void {
    const bucket = this.#buckets.get(targetId) ?? new TokenBucket(ALLOWED);
    this.#buckets.set(targetId, bucket);
    if (bucket.take(nowMs)) return;
    const retryAfterSeconds = Math.max(1, Math.ceil(bucket.waitMs(nowMs) / 1000));
    throw new ApiProblem('rate_limited', undefined, { retryAfterSeconds });
  }
}
