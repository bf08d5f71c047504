/**
 * The replay store in Redis, shared by all verifiers of a site.
 * Source: docs/protocol.md "Replay".
 */
import { randomBytes } from 'node:crypto';
import { parseRedisEndpoint } from '../redis/endpoint.ts';
import { classifyFault } from '../redis/faults.ts';
import { RedisLink } from '../redis/link.ts';
import { CONSUME_CODES, replayKeys, replayScripts } from '../redis/replay-scripts.ts';
import { DEFAULT_HOLDER_QUOTA_PER_MINUTE, DEFAULT_SKEW_SECONDS, systemClockSeconds } from './defaults.ts';
import {
  CONSUMED,
  REPLAYED,
  type ReplayClaim,
  type ReplayHealth,
  type ReplayOutcome,
  type ReplayStore,
  UNAVAILABLE,
} from './store.ts';

export const DEFAULT_REDIS_TIMEOUT_MS = 100;
const DEFAULT_CONNECT_TIMEOUT_MS = 2_000;
const DEFAULT_RECHECK_INTERVAL_MS = 5_000;
/** Share of the time-out that the script gets; the rest is for reading back what became of it. */
const SCRIPT_SHARE_OF_TIMEOUT = 0.6;

const KEYS = replayKeys('0');
const SCRIPTS = replayScripts(0);

export interface RedisReplayStoreOptions {
  /** `redis://[user:password@]host[:port][/database]`, or `rediss://` for TLS. */
  readonly url: string;
  /** Within this long every consume is answered. Default 100. */
  readonly timeoutMs?: number;
  /** For one attempt to connect. Default 2,000. */
  readonly connectTimeoutMs?: number;
  /** How often the server's settings are looked at again. Default 5,000. */
  readonly recheckIntervalMs?: number;
  /** Certificates (PEM) of the authorities to trust with `rediss://`. Default: the system's. */
  readonly certificateAuthorities?: string;
  /** Most identifiers that one holder may have remembered in a minute. Default 600,000. */
  readonly holderQuotaPerMinute?: number;
  /** The site's skew, with which a connection reckons the fence and compares clocks. Until it is known 5. */
  readonly expectedSkewSeconds?: () => number | undefined;
  /** The wall clock in seconds since the epoch; fractions are cut off. Default: the system's. */
  readonly clockSeconds?: () => number;
}

/**
 * Creates the store and starts to connect; until Redis is there and fit, consumes are refused (`store`).
 * Errors: `RedisSettingError` for a URL that cannot be used.
 */
export function createRedisReplayStore(options: RedisReplayStoreOptions): ReplayStore {
  return new RedisReplayStore(options);
}

class RedisReplayStore implements ReplayStore {
  readonly name = 'redis';
  readonly #link: RedisLink;
  readonly #clockSeconds: () => number;
  readonly #holderQuotaPerMinute: number;
  readonly #expectedSkewSeconds: () => number | undefined;
  readonly #readBackTimeoutMs: number;
  /** A nonce is this process's own random prefix and a count: unique, which is all that it must be. */
  readonly #noncePrefix = randomBytes(16).toString('base64url');
  #nonceCount = 0;
  /** Largest skew that a claim has shown; 0 before the first one. */
  #largestSkewSeconds = 0;
  /** The end of the fence that was found at the first connection; undefined before it. */
  #readyAfterSeconds: number | undefined;

  constructor(options: RedisReplayStoreOptions) {
    const timeoutMs = options.timeoutMs ?? DEFAULT_REDIS_TIMEOUT_MS;
    const scriptTimeoutMs = Math.ceil(timeoutMs * SCRIPT_SHARE_OF_TIMEOUT);
    this.#clockSeconds = options.clockSeconds ?? systemClockSeconds;
    this.#holderQuotaPerMinute = options.holderQuotaPerMinute ?? DEFAULT_HOLDER_QUOTA_PER_MINUTE;
    this.#expectedSkewSeconds = options.expectedSkewSeconds ?? (() => undefined);
    this.#readBackTimeoutMs = timeoutMs - scriptTimeoutMs;
    this.#link = new RedisLink({
      endpoint: parseRedisEndpoint(options.url),
      commandTimeoutMs: scriptTimeoutMs,
      connectTimeoutMs: options.connectTimeoutMs ?? DEFAULT_CONNECT_TIMEOUT_MS,
      recheckIntervalMs: options.recheckIntervalMs ?? DEFAULT_RECHECK_INTERVAL_MS,
      ...(options.certificateAuthorities === undefined
        ? {}
        : { certificateAuthorities: options.certificateAuthorities }),
      prepare: (link) => this.#prepare(link),
    });
  }

  consume(claim: ReplayClaim): ReplayOutcome | Promise<ReplayOutcome> {
    if (claim.skewSeconds > this.#largestSkewSeconds) this.#largestSkewSeconds = claim.skewSeconds;
    return this.#link.isServing ? this.#consumeInRedis(claim) : UNAVAILABLE.store;
  }

  async #consumeInRedis(claim: ReplayClaim): Promise<ReplayOutcome> {
    const recordKey = KEYS.recordPrefix + claim.identifier;
    this.#nonceCount += 1;
    const nonce = `${this.#noncePrefix}.${this.#nonceCount}`;
    const keysAndArguments = [
      KEYS.epoch,
      recordKey,
      KEYS.quotaPrefix + claim.holderThumbprint,
      nonce,
      claim.issuedAtSeconds,
      claim.expiresAtSeconds,
      claim.skewSeconds,
      claim.nowSeconds,
      this.#holderQuotaPerMinute,
    ];
    try {
      return this.#outcomeOf(await this.#link.runScript(SCRIPTS.consume, keysAndArguments));
    } catch (error) {
      const fault = classifyFault(error);
      if (fault.kind === 'no_answer') return await this.#settle(recordKey, nonce);
      if (fault.code === 'NOSCRIPT') return await this.#consumeInFull(keysAndArguments, recordKey, nonce);
      return this.#refuse();
    }
  }

  /** The server forgot the script (`SCRIPT FLUSH`), and so did nothing: once more, in full. */
  async #consumeInFull(
    keysAndArguments: readonly (string | number)[],
    recordKey: string,
    nonce: string,
  ): Promise<ReplayOutcome> {
    try {
      return this.#outcomeOf(await this.#link.runScriptInFull(SCRIPTS.consume, keysAndArguments));
    } catch (error) {
      if (classifyFault(error).kind === 'no_answer') return await this.#settle(recordKey, nonce);
      return this.#refuse();
    }
  }

  #outcomeOf(code: unknown): ReplayOutcome {
    switch (code) {
      case CONSUME_CODES.consumed:
        return CONSUMED;
      case CONSUME_CODES.replayed:
        return REPLAYED;
      case CONSUME_CODES.fenced:
        return UNAVAILABLE.fenced;
      case CONSUME_CODES.quota:
        return UNAVAILABLE.quota;
      default:
        // The clocks differ, or what answers is not our script.
        return this.#refuse();
    }
  }

  #refuse(): ReplayOutcome {
    this.#link.suspect();
    return UNAVAILABLE.store;
  }

  /** After no answer: consumed when the record is there and our own; otherwise nobody can say. */
  async #settle(recordKey: string, nonce: string): Promise<ReplayOutcome> {
    this.#link.suspect();
    return (await this.#holdsWithinTimeout(recordKey, nonce)) ? CONSUMED : UNAVAILABLE.store;
  }

  /** Whether the record is there and our own; not to know in time is no. */
  async #holdsWithinTimeout(recordKey: string, nonce: string): Promise<boolean> {
    let timer: NodeJS.Timeout | undefined;
    const timeUp = new Promise<boolean>((resolve) => {
      timer = setTimeout(resolve, this.#readBackTimeoutMs, false);
    });
    const isOwn = await Promise.race([this.#holds(recordKey, nonce), timeUp]);
    clearTimeout(timer);
    return isOwn;
  }

  async #holds(recordKey: string, nonce: string): Promise<boolean> {
    await this.#link.whenServing();
    try {
      return (await this.#link.read(recordKey)) === nonce;
    } catch {
      return false;
    }
  }

  /** On every connection, before the first consume: the scripts, the clocks, the epoch. */
  async #prepare(link: RedisLink): Promise<string | undefined> {
    await link.loadScript(SCRIPTS.consume);
    const nowSeconds = Math.floor(this.#clockSeconds());
    const expectedSkewSeconds = this.#expectedSkewSeconds() ?? DEFAULT_SKEW_SECONDS;
    const toleranceSeconds = Math.max(this.#largestSkewSeconds, expectedSkewSeconds);
    const reply = await link.runScriptInFull(SCRIPTS.prepare, [
      KEYS.epoch,
      this.#largestSkewSeconds,
      nowSeconds,
      toleranceSeconds,
    ]);
    const epoch = parseEpoch(reply);
    if (epoch === undefined) return 'Redis does not answer the replay store as it should';
    if (epoch.momentSeconds === 0) {
      const apartSeconds = Math.abs(epoch.serverSeconds - nowSeconds);
      return `the clocks of Redis and of this verifier are ${apartSeconds} s apart, more than ${toleranceSeconds} s`;
    }
    const skewSeconds = Math.max(epoch.largestSkewSeconds, toleranceSeconds);
    this.#readyAfterSeconds ??= epoch.momentSeconds + 2 * skewSeconds;
    return undefined;
  }

  health(): ReplayHealth {
    const { problem } = this.#link;
    if (problem !== undefined) return { ready: false, problem };
    const secondsToGo = (this.#readyAfterSeconds ?? 0) - Math.floor(this.#clockSeconds()) + 1;
    if (secondsToGo > 0) {
      return {
        ready: false,
        problem: `Redis holds no older replay records: proofs are refused for another ${secondsToGo} s`,
      };
    }
    return { ready: true };
  }

  close(): Promise<void> {
    return this.#link.close();
  }
}

interface ReplayEpoch {
  readonly serverSeconds: number;
  readonly momentSeconds: number;
  readonly largestSkewSeconds: number;
}

function parseEpoch(reply: unknown): ReplayEpoch | undefined {
  if (!Array.isArray(reply)) return undefined;
  const [serverSeconds, momentSeconds, largestSkewSeconds]: readonly unknown[] = reply;
  if (!Number.isSafeInteger(serverSeconds) || !Number.isSafeInteger(momentSeconds)) return undefined;
  if (typeof serverSeconds !== 'number' || typeof momentSeconds !== 'number') return undefined;
  if (typeof largestSkewSeconds !== 'number') return undefined;
  return { serverSeconds, momentSeconds, largestSkewSeconds };
}
