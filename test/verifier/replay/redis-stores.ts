/** Stores in Redis for tests: opened with what all of them need, observed, and closed together. */
import { createRedisReplayStore, type RedisReplayStoreOptions } from '../../../src/verifier/replay/redis.ts';
import {
  type ReplayFenceReason,
  type ReplayOutcome,
  type ReplayStore,
  UNAVAILABLE,
} from '../../../src/verifier/replay/store.ts';
import { waitUntil } from '../../support/wait.ts';
import { SKEW_SECONDS } from './claims.ts';

export class TestRedisStores {
  readonly #opened: ReplayStore[] = [];
  /** Reasons of all raised fences, in order, from all stores. */
  raised: ReplayFenceReason[] = [];

  open(url: string, options: Partial<RedisReplayStoreOptions> = {}): ReplayStore {
    const store = createRedisReplayStore({
      url,
      timeoutMs: 2_000,
      expectedSkewSeconds: () => SKEW_SECONDS,
      observer: { fenceRaised: (why) => this.raised.push(why) },
      ...options,
    });
    this.#opened.push(store);
    return store;
  }

  /** Resolves when so many links serve; proofs of now may be fenced still. */
  async openServing(
    url: string,
    options: Partial<RedisReplayStoreOptions> = {},
    linkCount = 1,
  ): Promise<ReplayStore> {
    const store = this.open(url, options);
    await waitUntil(() => servingLinks(store) === linkCount);
    return store;
  }

  async closeAll(): Promise<void> {
    for (const store of this.#opened.splice(0)) await store.close();
    this.raised = [];
  }
}

export function servingLinks(store: ReplayStore): number {
  return store.health().links?.serving ?? 0;
}

/** Why the store takes nothing; empty when it takes something. */
export function problemOf(store: ReplayStore): string {
  const health = store.health();
  return health.ready ? '' : health.problem;
}

/** Repeats the call until the answer is something other than an unavailable store. */
export async function untilAnswered(
  consume: () => ReplayOutcome | Promise<ReplayOutcome>,
): Promise<ReplayOutcome> {
  let outcome: ReplayOutcome = UNAVAILABLE.store;
  await waitUntil(async () => {
    outcome = await consume();
    return outcome !== UNAVAILABLE.store;
  });
  return outcome;
}

export function nowSeconds(): number {
  return Math.floor(Date.now() / 1000);
}
