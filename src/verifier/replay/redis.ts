/**
 * The replay store in Redis, shared by all verifiers of a site: one server, a group under Sentinels, or a Cluster.
 * Source: docs/design/protocol.md "Replay"; docs/operate/replay.md.
 */
import { randomBytes } from 'node:crypto';
import { withinMs } from '../../process/program/time-limit.ts';
import { DEFAULT_SKEW_SECONDS } from '../../protocol/limits.ts';
import { parseRedisEndpoint, type RedisLogin } from '../redis/endpoint.ts';
import type { DeclaredFailoverSettings } from '../redis/failover-settings.ts';
import { classifyFault } from '../redis/faults.ts';
import type { RedisLink } from '../redis/link.ts';
import { openPrimaries } from '../redis/open-primaries.ts';
import type { Primaries } from '../redis/primaries.ts';
import { replayKeys } from '../redis/replay-keys.ts';
import { BUCKET_SECONDS, CONSUME_CODES, REPLAY_SCRIPTS } from '../redis/replay-scripts.ts';
import { LatestIssued } from './latest-issued.ts';
import { RedisFences } from './redis-fences.ts';
import { redisHealth } from './redis-health.ts';
import { prepareShards } from './redis-preparation.ts';
import { packSextets } from './sextets.ts';
import {
  CONSUMED,
  DEFAULT_HOLDER_QUOTA_PER_MINUTE,
  DEFAULT_SUBJECT_QUOTA_PER_MINUTE,
  REPLAYED,
  type ReplayClaim,
  type ReplayHealth,
  type ReplayObserver,
  type ReplayOutcome,
  type ReplayStore,
  systemClockSeconds,
  UNAVAILABLE,
} from './store.ts';

const DEFAULT_REDIS_TIMEOUT_MS = 100;
const DEFAULT_CONNECT_TIMEOUT_MS = 2_000;
const DEFAULT_RECHECK_INTERVAL_MS = 5_000;
/** Share of the timeout for the script; the rest is for reading back the record. */
const SCRIPT_SHARE_OF_TIMEOUT = 0.6;
/** Minimum interval between looks after a fenced proof, so that callers with old proofs cannot cause more. */
const FENCE_LOOK_INTERVAL_MS = 1_000;
/** Leaves 6 of 30 bits, for 64 shards. */
const SHIFT_TO_SHARD = 24;

export interface RedisReplayStoreOptions {
  /** See `parseRedisEndpoint`. */
  readonly url: string;
  /** Maximum time to answer a consume, milliseconds. Default 100. */
  readonly timeoutMs?: number;
  /** Timeout for one attempt to connect. Default 2,000. */
  readonly connectTimeoutMs?: number;
  /** Interval between checks of the servers' settings. Default 5,000. */
  readonly recheckIntervalMs?: number;
  /** CA certificates (PEM) for TLS. Default: the system's. */
  readonly certificateAuthorities?: string;
  /** Login for Sentinels that require their own. Default: none. */
  readonly sentinelLogin?: RedisLogin;
  /** For servers that refuse `CONFIG GET`. Default: their settings are unknown. */
  readonly declaredFailoverSettings?: DeclaredFailoverSettings;
  /** Maximum number of identifiers that one holder may add in a minute. Default 600,000. */
  readonly holderQuotaPerMinute?: number;
  /** The same for all holders of one issuer and subject; on a Cluster for those in each part. Default 1,200,000. */
  readonly subjectQuotaPerMinute?: number;
  /** The site's skew, from which a check computes the fence and the clock tolerance. Until it is known, 5. */
  readonly expectedSkewSeconds?: () => number | undefined;
  /** The wall clock in seconds since the epoch; fractions are cut off. Default: the system's. */
  readonly clockSeconds?: () => number;
  readonly observer?: ReplayObserver;
}

/**
 * Creates the store and starts to connect. Until Redis is reachable and fit, consumes are rejected (`store`).
 * @throws RedisSettingError for an invalid URL
 */
export function createRedisReplayStore(options: RedisReplayStoreOptions): ReplayStore {
  return new RedisReplayStore(options);
}

/** A consume in progress. */
interface Attempt {
  /** The primary that received the script; only it can say whether the record was written. */
  readonly link: RedisLink;
  readonly bucketKey: string;
  readonly nonce: string;
  readonly keysAndArguments: readonly (string | number)[];
  readonly claim: ReplayClaim;
}

class RedisReplayStore implements ReplayStore {
  readonly name = 'redis';
  readonly #primaries: Primaries;
  readonly #keys: readonly ReturnType<typeof replayKeys>[];
  readonly #fences: RedisFences;
  /** Shards that their primary rejected at the last look, and why. */
  readonly #refusedShards = new Map<number, string>();
  readonly #clockSeconds: () => number;
  readonly #holderQuotaPerMinute: number;
  readonly #subjectQuotaPerMinute: number;
  readonly #expectedSkewSeconds: () => number | undefined;
  readonly #readBackTimeoutMs: number;
  /** A nonce is a random prefix of this process and a counter. It only has to be unique. */
  readonly #noncePrefix = randomBytes(9).toString('base64url');
  #nonceCount = 0;
  /** Largest skew in a claim so far; 0 before the first one. */
  #largestSkewSeconds = 0;
  readonly #latestIssued = new LatestIssued();
  #nextFenceLookMs = 0;

  constructor(options: RedisReplayStoreOptions) {
    const timeoutMs = options.timeoutMs ?? DEFAULT_REDIS_TIMEOUT_MS;
    const scriptTimeoutMs = Math.ceil(timeoutMs * SCRIPT_SHARE_OF_TIMEOUT);
    this.#clockSeconds = options.clockSeconds ?? systemClockSeconds;
    this.#holderQuotaPerMinute = options.holderQuotaPerMinute ?? DEFAULT_HOLDER_QUOTA_PER_MINUTE;
    this.#subjectQuotaPerMinute = options.subjectQuotaPerMinute ?? DEFAULT_SUBJECT_QUOTA_PER_MINUTE;
    this.#expectedSkewSeconds = options.expectedSkewSeconds ?? (() => undefined);
    this.#readBackTimeoutMs = timeoutMs - scriptTimeoutMs;
    this.#fences = new RedisFences(options.observer);
    this.#primaries = openPrimaries({
      endpoint: parseRedisEndpoint(options.url),
      commandTimeoutMs: scriptTimeoutMs,
      connectTimeoutMs: options.connectTimeoutMs ?? DEFAULT_CONNECT_TIMEOUT_MS,
      recheckIntervalMs: options.recheckIntervalMs ?? DEFAULT_RECHECK_INTERVAL_MS,
      certificateAuthorities: options.certificateAuthorities,
      declaredFailoverSettings: options.declaredFailoverSettings ?? {},
      sentinelLogin: options.sentinelLogin,
      prepare: (link) => this.#prepare(link),
    });
    this.#keys = this.#primaries.tags.map(replayKeys);
  }

  consume(claim: ReplayClaim): ReplayOutcome | Promise<ReplayOutcome> {
    if (claim.skewSeconds > this.#largestSkewSeconds) this.#largestSkewSeconds = claim.skewSeconds;
    const shard = this.#shardOf(claim);
    const keys = this.#keys[shard];
    const link = this.#primaries.linkOf(shard);
    if (keys === undefined || link === undefined || !link.isServing) return UNAVAILABLE.store;
    const bucketKey = keys.bucketPrefix + Math.floor(claim.expiresAtSeconds / BUCKET_SECONDS);
    this.#nonceCount += 1;
    const nonce = this.#noncePrefix + this.#nonceCount.toString(36);
    const keysAndArguments = [
      keys.epoch,
      bucketKey,
      keys.quotaPrefix + claim.holderThumbprint,
      keys.subjectQuotaPrefix + claim.subjectHash,
      claim.identifier,
      nonce,
      claim.issuedAtSeconds,
      claim.expiresAtSeconds,
      claim.skewSeconds,
      claim.nowSeconds,
      this.#holderQuotaPerMinute,
      this.#largestSkewSeconds,
      link.fenceMarginSeconds,
      this.#latestIssued.seconds,
      link.neededReplicas,
      this.#subjectQuotaPerMinute,
    ];
    return this.#attempt({ link, bucketKey, nonce, keysAndArguments, claim });
  }

  /** A holder's records, quota and epoch are on one shard, which the first bits of its thumbprint choose. */
  #shardOf({ holderThumbprint }: ReplayClaim): number {
    return this.#keys.length === 1 ? 0 : packSextets(holderThumbprint, 0) >> SHIFT_TO_SHARD;
  }

  async #attempt(attempt: Attempt): Promise<ReplayOutcome> {
    const { keysAndArguments, link } = attempt;
    try {
      return this.#outcomeOf(attempt, await link.runScript(REPLAY_SCRIPTS.consume, keysAndArguments));
    } catch (error) {
      const fault = classifyFault(error);
      if (fault.kind === 'no_answer') return await this.#settle(attempt);
      // The server lost the script (`SCRIPT FLUSH`) and so did nothing: retry once with the full script.
      return fault.code === 'NOSCRIPT' ? await this.#consumeInFull(attempt) : this.#refuse(link);
    }
  }

  async #consumeInFull(attempt: Attempt): Promise<ReplayOutcome> {
    const { keysAndArguments, link } = attempt;
    try {
      return this.#outcomeOf(attempt, await link.runScriptInFull(REPLAY_SCRIPTS.consume, keysAndArguments));
    } catch (error) {
      if (classifyFault(error).kind === 'no_answer') return await this.#settle(attempt);
      return this.#refuse(link);
    }
  }

  #outcomeOf({ claim, link }: Attempt, code: unknown): ReplayOutcome {
    switch (code) {
      case CONSUME_CODES.consumed:
        return this.#consumed(claim);
      case CONSUME_CODES.replayed:
        return REPLAYED;
      case CONSUME_CODES.raised:
        link.suspect();
        return UNAVAILABLE.fenced;
      case CONSUME_CODES.fenced:
        this.#lookAtFence(link);
        return UNAVAILABLE.fenced;
      case CONSUME_CODES.quota:
        return UNAVAILABLE.quota;
      default:
        // The clocks differ, or the reply is not from our script.
        link.suspect();
        return UNAVAILABLE.store;
    }
  }

  #consumed({ issuedAtSeconds, nowSeconds, skewSeconds }: ReplayClaim): ReplayOutcome {
    // A verifier accepts proofs that are issued at most a skew ahead.
    this.#latestIssued.note(Math.min(issuedAtSeconds, nowSeconds + skewSeconds));
    return CONSUMED;
  }

  /** Another verifier may have hit the fence first. */
  #lookAtFence(link: RedisLink): void {
    const nowMs = performance.now();
    if (nowMs < this.#nextFenceLookMs) return;
    this.#nextFenceLookMs = nowMs + FENCE_LOOK_INTERVAL_MS;
    link.suspect();
  }

  #refuse(link: RedisLink): ReplayOutcome {
    link.suspect();
    this.#primaries.suspect(link);
    return UNAVAILABLE.store;
  }

  /** Without a reply, the proof is consumed only if the record exists and is ours. */
  async #settle(attempt: Attempt): Promise<ReplayOutcome> {
    this.#refuse(attempt.link);
    const isOwn = await withinMs(this.#readBackTimeoutMs, holds(attempt), false);
    return isOwn ? this.#consumed(attempt.claim) : UNAVAILABLE.store;
  }

  /** Runs on every check of a primary, before the first consume: prepares scripts, clocks and epochs. */
  async #prepare(link: RedisLink): Promise<string | undefined> {
    const toleranceSeconds = this.#toleranceSeconds();
    const shards = this.#primaries.shardsOf(link);
    const { epochs, problem, refused } = await prepareShards(link, {
      keys: new Map(shards.map((shard) => [shard, this.#keys[shard] ?? replayKeys('')])),
      nowSeconds: this.#nowSeconds(),
      largestSkewSeconds: this.#largestSkewSeconds,
      toleranceSeconds,
      latestIssuedSeconds: this.#latestIssued.seconds,
    });
    for (const shard of shards) this.#refusedShards.delete(shard);
    for (const [shard, code] of refused) this.#refusedShards.set(shard, code);
    if (refused.size > 0) this.#primaries.suspect(link);
    if (problem === undefined) this.#fences.note(epochs, toleranceSeconds);
    return problem;
  }

  #toleranceSeconds(): number {
    return Math.max(this.#largestSkewSeconds, this.#expectedSkewSeconds() ?? DEFAULT_SKEW_SECONDS);
  }

  #nowSeconds(): number {
    return Math.floor(this.#clockSeconds());
  }

  health(): ReplayHealth {
    return redisHealth(this.#primaries, this.#fences, this.#refusedShards, this.#nowSeconds());
  }

  close(): Promise<void> {
    return this.#primaries.close();
  }
}

/** Asks only the primary that received the attempt. */
async function holds({ bucketKey, claim, link, nonce }: Attempt): Promise<boolean> {
  await link.whenServing();
  try {
    return (await link.readField(bucketKey, claim.identifier)) === nonce;
  } catch {
    return false;
  }
}
