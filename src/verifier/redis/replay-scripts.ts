/**
 * The scripts and keys of the replay store in Redis. One script does all of a consume, atomically, on the
 * primary. Source: docs/protocol.md "Replay".
 */
import { type RedisScript, redisScript } from './script.ts';

/** What the consume script answers; anything else is no answer. */
export const CONSUME_CODES = {
  consumed: 1,
  replayed: 2,
  fenced: 3,
  quota: 4,
  /** The server's clock and the verifier's differ by more than the skew. */
  clock: 5,
} as const;

export interface ReplayScripts {
  /**
   * Keys: epoch, record, quota of the holder. Arguments: nonce, issued-at, expires-at, skew, the verifier's
   * clock (all in seconds), quota a minute. Answers one of `CONSUME_CODES`.
   */
  readonly consume: RedisScript;
  /**
   * Sees to it that there is an epoch, so that the fence runs before the first request.
   * Keys: epoch. Arguments: largest skew that this verifier has seen (0: none yet), the verifier's clock,
   * the largest difference of clocks to accept (all in seconds).
   * Answers the server's clock, the epoch's moment and its largest skew; the moment is 0 and nothing is
   * written when the clocks are too far apart.
   */
  readonly prepare: RedisScript;
}

/**
 * The epoch key holds moment, `master_replid` and the largest skew used with it (0: nothing recorded yet);
 * it never expires. Everything recorded before it was lost, or under another primary, or for a smaller
 * skew, was recorded before the moment that it moves to.
 */
const epochLua = (fenceMarginSeconds: number): string => `
local seconds = tonumber(redis.call('TIME')[1])

local function epoch(key, skew)
  local replid = string.match(redis.call('INFO', 'replication'), 'master_replid:(%x+)')
  assert(replid, 'no master_replid')
  local stored = redis.call('GET', key)
  local moment, known, largest
  if stored then moment, known, largest = string.match(stored, '^(%d+) (%x+) (%d+)$') end
  moment = tonumber(moment) or 0
  largest = tonumber(largest) or 0
  local moves = known ~= replid or (largest > 0 and largest < skew)
  if moves then moment = math.max(moment, seconds + ${fenceMarginSeconds}) end
  if moves or largest < skew then
    largest = math.max(largest, skew)
    redis.call('SET', key, string.format('%d %s %d', moment, replid, largest))
  end
  return moment, largest
end
`;

/** Comparisons are written so that what is no number refuses. */
const CONSUME_LUA = `
local nonce = ARGV[1]
local issued, expires, skew = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local now, quota = tonumber(ARGV[5]), tonumber(ARGV[6])

-- First, so that a server whose clock is wrong sets no epoch.
if not (math.abs(seconds - now) <= skew) then return ${CONSUME_CODES.clock} end

local moment, largest = epoch(KEYS[1], skew)
if not (issued > moment + 2 * largest) then return ${CONSUME_CODES.fenced} end
local ttl = expires - seconds + 3 * largest + 2
if not (ttl > 0) then return ${CONSUME_CODES.fenced} end

if redis.call('EXISTS', KEYS[2]) == 1 then return ${CONSUME_CODES.replayed} end

local used = redis.call('INCR', KEYS[3])
if used == 1 then redis.call('EXPIRE', KEYS[3], 60) end
if used > quota then return ${CONSUME_CODES.quota} end

-- Never PXAT: a time in the past answers OK, every time.
if redis.call('SET', KEYS[2], nonce, 'NX', 'PX', string.format('%d', ttl * 1000)) then
  return ${CONSUME_CODES.consumed}
end
return ${CONSUME_CODES.replayed}
`;

const PREPARE_LUA = `
local skew, now, tolerance = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
if not (math.abs(seconds - now) <= tolerance) then return { seconds, 0, 0 } end
local moment, largest = epoch(KEYS[1], skew)
return { seconds, moment, largest }
`;

/**
 * `fenceMarginSeconds` is F of docs/protocol.md: how long a demoted primary may go on accepting writes;
 * 0 for a single server.
 */
export function replayScripts(fenceMarginSeconds: number): ReplayScripts {
  const shared = epochLua(fenceMarginSeconds);
  return {
    consume: redisScript(shared + CONSUME_LUA, 3),
    prepare: redisScript(shared + PREPARE_LUA, 1),
  };
}

export interface ReplayKeys {
  readonly epoch: string;
  /** Followed by the replay identifier. */
  readonly recordPrefix: string;
  /** Followed by the holder's thumbprint. */
  readonly quotaPrefix: string;
}

/** All keys that one script touches share the hash tag, and with it the slot in a Cluster. */
export function replayKeys(tag: string): ReplayKeys {
  return {
    epoch: `proofgate:{${tag}}:epoch`,
    recordPrefix: `proofgate:{${tag}}:jti:`,
    quotaPrefix: `proofgate:{${tag}}:quota:`,
  };
}
