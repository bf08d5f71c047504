/** Stores a site's shared mark in the Redis of its replay store. Source: `src/verifier/loading/state/shared-mark.ts`. */
import { createHash, randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { isStoreId } from '../../bundle/format/instance-report.ts';
import { withinMs } from '../../process/program/time-limit.ts';
import { isBase64urlOf32Bytes } from '../../protocol/base64url.ts';
import { type Mark, type SharedMark, SharedMarkError } from '../loading/state/shared-mark.ts';
import { parseRedisEndpoint, type RedisLogin } from './endpoint.ts';
import type { DeclaredFailoverSettings } from './failover-settings.ts';
import { classifyFault, describeRefusal, describeSilence } from './faults.ts';
import type { RedisLink } from './link.ts';
import { openPrimaries } from './open-primaries.ts';
import type { Primaries } from './primaries.ts';
import { type RedisScript, redisScript } from './script.ts';

const DEFAULT_CONNECT_TIMEOUT_MS = 2_000;
/** Marks are read seldom, and each caller passes its own timeout. */
const COMMAND_TIMEOUT_MS = 2_000;
const RECHECK_INTERVAL_MS = 5_000;
/** How often to check for a connection while waiting for one. */
const LOOK_INTERVAL_MS = 20;

const STORE_ID_BYTES = 16;

const LATE = Symbol('late');

/** Key: the mark. Arguments: revision, head. Returns the stored mark after the call; an unreadable value stays. */
const RAISE = redisScript(
  `
local kept = redis.call('GET', KEYS[1])
if kept then
  local revision = string.match(kept, '^([1-9]%d*) ')
  if not revision or tonumber(revision) >= tonumber(ARGV[1]) then return kept end
end
local mark = ARGV[1] .. ' ' .. ARGV[2]
redis.call('SET', KEYS[1], mark)
return mark
`,
  1,
);

/** Key: the mark. Returns the previous value, of whatever type, or nil. */
const RESET = redisScript(
  `
local kind = redis.call('TYPE', KEYS[1]).ok
if kind == 'none' then return false end
local kept = kind == 'string' and redis.call('GET', KEYS[1]) or ''
redis.call('DEL', KEYS[1])
return kept
`,
  1,
);

/** Key: the ID of the store. Argument: a new one. Returns the stored ID after the call. */
const IDENTIFY = redisScript(
  `
local kept = redis.call('GET', KEYS[1])
if kept then return kept end
redis.call('SET', KEYS[1], ARGV[1])
return ARGV[1]
`,
  1,
);

export interface RedisSharedMarkOptions {
  /** See `parseRedisEndpoint`. */
  readonly url: string;
  /** Timeout for one attempt to connect. Default 2,000. */
  readonly connectTimeoutMs?: number;
  /** CA certificates (PEM) for TLS. Default: the system's. */
  readonly certificateAuthorities?: string;
  /** Login for Sentinels that require their own. Default: none. */
  readonly sentinelLogin?: RedisLogin;
  /** For servers that refuse `CONFIG GET`. Default: their settings are unknown. */
  readonly declaredFailoverSettings?: DeclaredFailoverSettings;
}

/**
 * Starts to connect at once and retries until `close`.
 * @throws RedisSettingError for an invalid URL
 */
export function createRedisSharedMark(options: RedisSharedMarkOptions): SharedMark {
  return new RedisSharedMark(
    openPrimaries({
      endpoint: parseRedisEndpoint(options.url),
      commandTimeoutMs: COMMAND_TIMEOUT_MS,
      connectTimeoutMs: options.connectTimeoutMs ?? DEFAULT_CONNECT_TIMEOUT_MS,
      recheckIntervalMs: RECHECK_INTERVAL_MS,
      certificateAuthorities: options.certificateAuthorities,
      declaredFailoverSettings: options.declaredFailoverSettings ?? {},
      sentinelLogin: options.sentinelLogin,
      prepare: async () => undefined,
    }),
  );
}

class RedisSharedMark implements SharedMark {
  readonly #primaries: Primaries;
  #isClosed = false;

  constructor(primaries: Primaries) {
    this.#primaries = primaries;
  }

  async read(authSite: string, timeoutMs: number): Promise<Mark | undefined> {
    const kept = await this.#ask(authSite, timeoutMs, `mark:${authSite}`, (link, key) =>
      link.call('GET', key),
    );
    return kept === null ? undefined : parseMark(kept);
  }

  async raise(authSite: string, mark: Mark, timeoutMs: number): Promise<Mark> {
    const kept = await this.#run(RAISE, authSite, timeoutMs, [`${mark.revision}`, mark.head]);
    return parseMark(kept);
  }

  async reset(authSite: string, timeoutMs: number): Promise<Mark | 'unreadable' | undefined> {
    const kept = await this.#run(RESET, authSite, timeoutMs, []);
    if (kept === null) return undefined;
    return readMark(kept) ?? 'unreadable';
  }

  async storeId(authSite: string, timeoutMs: number): Promise<string> {
    const own = randomBytes(STORE_ID_BYTES).toString('base64url');
    const kept = await this.#ask(authSite, timeoutMs, 'store', (link, key) =>
      link.runScriptInFull(IDENTIFY, [key, own]),
    );
    if (typeof kept !== 'string' || !isStoreId(kept)) {
      throw new SharedMarkError('corrupt', 'what Redis keeps as its ID cannot be read as one');
    }
    return kept;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#primaries.close();
  }

  #run(script: RedisScript, authSite: string, timeoutMs: number, words: readonly string[]): Promise<unknown> {
    return this.#ask(authSite, timeoutMs, `mark:${authSite}`, (link, key) =>
      link.runScriptInFull(script, [key, ...words]),
    );
  }

  /** @throws SharedMarkError */
  async #ask(
    authSite: string,
    timeoutMs: number,
    name: string,
    ask: (link: RedisLink, key: string) => Promise<unknown>,
  ): Promise<unknown> {
    const deadlineMs = performance.now() + timeoutMs;
    const shard = shardOf(authSite, this.#primaries.tags.length);
    const link = await this.#servingLink(shard, deadlineMs);
    const key = `proofgate:{${this.#primaries.tags[shard]}}:${name}`;
    const answer = ask(link, key).catch((error: unknown) => {
      throw this.#faultOf(error, link);
    });
    const result = await withinMs(Math.max(0, deadlineMs - performance.now()), answer, LATE);
    if (result === LATE) throw unavailable(describeSilence(link.label));
    return result;
  }

  async #servingLink(shard: number, deadlineMs: number): Promise<RedisLink> {
    for (;;) {
      const link = this.#primaries.linkOf(shard);
      if (link?.isServing === true) return link;
      if (this.#isClosed) throw unavailable('the connection to Redis is closed');
      if (performance.now() >= deadlineMs) {
        throw unavailable(link?.problem ?? this.#primaries.problem() ?? 'Redis is not there');
      }
      await sleep(LOOK_INTERVAL_MS);
    }
  }

  #faultOf(error: unknown, link: RedisLink): SharedMarkError {
    const fault = classifyFault(error);
    if (fault.kind === 'refused' && fault.code === 'WRONGTYPE') return corrupt();
    link.suspect();
    this.#primaries.suspect(link);
    return unavailable(
      fault.kind === 'refused' ? describeRefusal(fault.code, link.label) : describeSilence(link.label),
    );
  }
}

/** Any shard works, as long as it is always the same one. */
function shardOf(authSite: string, shardCount: number): number {
  return (createHash('sha256').update(authSite).digest()[0] ?? 0) % shardCount;
}

/** @throws SharedMarkError `corrupt` */
function parseMark(kept: unknown): Mark {
  const mark = readMark(kept);
  if (mark === undefined) throw corrupt();
  return mark;
}

function readMark(kept: unknown): Mark | undefined {
  const [, revisionText, head] =
    typeof kept === 'string' ? (/^([1-9][0-9]{0,15}) ([^ ]+)$/.exec(kept) ?? []) : [];
  const revision = Number(revisionText);
  if (head === undefined || !Number.isSafeInteger(revision) || !isBase64urlOf32Bytes(head)) {
    return undefined;
  }
  return { revision, head };
}

function corrupt(): SharedMarkError {
  return new SharedMarkError('corrupt', 'what Redis keeps as the shared mark cannot be read as one');
}

function unavailable(message: string): SharedMarkError {
  return new SharedMarkError('unavailable', message);
}
