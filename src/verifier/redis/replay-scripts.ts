/**
 * Lua scripts and keys of the replay store in Redis. One script performs a whole consume atomically on the primary.
 * Source: docs/design/protocol.md "Replay"; the argument about clocks: docs/operate/replay.md "Clocks".
 *
 * Records are stored in hashes, one for each 32 s in which proofs expire, and their keys have no time to live: Redis
 * would delete them by a clock that may be ahead. Only these scripts delete a hash, and in the same step they raise
 * `low`, below which every proof is rejected. So whatever the clocks do, either the proof is rejected or its hash
 * exists. The epoch covers what clocks cannot cause: loss of data.
 */
import { FOLLOWED_SECONDS } from './failover-settings.ts';
import { type RedisScript, redisScript } from './script.ts';

/** Return codes of the consume script; any other reply is invalid. */
export const CONSUME_CODES = {
  consumed: 1,
  replayed: 2,
  fenced: 3,
  quota: 4,
  /** The server's clock and the verifier's differ by more than the skew, or the proof expires too late. */
  clock: 5,
  /** Fenced, by a fence that this call raised. */
  raised: 6,
} as const;

/** Proofs that expire within the same interval of this length share one hash. */
export const BUCKET_SECONDS = 32;

export interface ReplayScripts {
  /**
   * Keys: epoch, hash of the record, quota of the holder, quota of issuer and subject. Arguments: identifier, nonce, issued-at, expires-at, maximum
   * difference of clocks, the verifier's clock, holder's quota for each minute, largest skew that the verifier has seen,
   * F, latest issued-at that it consumed recently (0: none), number of replicas that must follow, quota of issuer and
   * subject for each minute. Returns one of `CONSUME_CODES`, or the error `NOREPLICAS`.
   */
  readonly consume: RedisScript;
  /**
   * Creates the epoch if it is missing, so that the fence runs before the first request, and deletes expired hashes.
   * Keys: epoch. Arguments: key prefix of the record hashes, maximum difference of clocks, the verifier's clock,
   * largest skew that this verifier has seen (0: none yet), F, latest issued-at that it consumed recently (0: none),
   * number of replicas that must follow. Returns the server's clock, the moment of the fence, the largest skew, the
   * reason of the last fence, and the lowest expires-at that is accepted; or the error `NOREPLICAS`. When clocks are
   * too far apart, the moment is 0 and nothing is written.
   */
  readonly prepare: RedisScript;
}

/**
 * Maximum seconds between two looks. After a longer gap the clock may have jumped ahead, or the server was suspended
 * while another took its place. Every verifier looks every 5 s. Less than any F that is not 0: docs/operate/replay.md "Pauses".
 */
const GAP_SECONDS = 10;
/** After a jump nothing is deleted for so long, so that a clock that soon goes back has deleted nothing. */
const HOLD_SECONDS = 300;
/** An error in the style of Redis' own, which the caller recognizes. The script's findings are written all the same. */
const NOT_FOLLOWED = `redis.error_reply('NOREPLICAS replicas have not acknowledged lately')`;
/** Maximum time to expiry of a proof that a verifier accepts. */
const MOST_AHEAD_SECONDS = 1_000;
/** More hashes than the proofs of one timeline need: about 20 with the longest proofs and the largest skew. */
const MOST_BUCKETS = 128;

/**
 * Fields of the epoch key, which never expires, separated by spaces:
 *   moment   proofs issued up to it, plus twice the largest skew, are rejected: their records may be lost
 *   replid   `master_replid` of the primary to which the moment applies
 *   largest  largest skew used with it; 0: nothing recorded yet
 *   cut      a second moment, for clocks: unlike the first it may move back, when the clock does
 *   seen     the server's clock when a script last looked
 *   held     nothing is deleted until then
 *   low      number of the lowest hash that was not deleted
 *   why      reason of the last fence
 *   numbers of the existing hashes, separated by commas
 * and where replicas must follow:
 *   followed the server's clock at a moment since which enough replicas are known to have followed
 *   marked   the server's clock when `sent` was recorded
 *   sent     offset of the replication stream before that record itself was written
 */
const EPOCH_LUA = `
local seconds = tonumber(redis.call('TIME')[1])

-- Only the epoch key is gone: hashes that are still there go on being looked at, and are deleted in their time.
local function search(prefix)
  local found = {}
  local first = math.floor((seconds - ${MOST_AHEAD_SECONDS}) / ${BUCKET_SECONDS})
  local last = math.floor((seconds + ${MOST_AHEAD_SECONDS}) / ${BUCKET_SECONDS})
  for number = first, last do
    local text = string.format('%d', number)
    if redis.call('EXISTS', prefix .. text) == 1 then found[#found + 1] = text end
  end
  return found
end

local function read(key, prefix)
  local stored = redis.call('GET', key) or ''
  local moment, replid, largest, cut, seen, held, low, why, numbers, followed, marked, sent = string.match(stored,
    '^(%d+) (%x+) (%d+) (%d+) (%d+) (%d+) (%d+) (%a[%a_]*) ([%d,]*) ?(%d*) ?(%d*) ?(%d*)$')
  if not moment then
    -- Never lower than before, also where the rest cannot be read.
    moment = tonumber(string.match(stored, '^%d+') or 0)
    return { moment = moment, largest = 0, cut = 0, seen = seconds, held = 0, low = 0, why = 'epoch_missing',
      numbers = search(prefix) }
  end
  local list = {}
  for text in string.gmatch(numbers, '%d+') do list[#list + 1] = text end
  return { moment = tonumber(moment), replid = replid, largest = tonumber(largest), cut = tonumber(cut),
    seen = tonumber(seen), held = tonumber(held), low = tonumber(low), why = why, numbers = list,
    followed = tonumber(followed), marked = tonumber(marked), sent = tonumber(sent) }
end

local function raise(epoch, why)
  epoch.why, epoch.raised, epoch.changed = why, true, true
end

-- The clock jumped, or no verifier looked for a while; the two look the same: data may have been lost under a clock that
-- was wrong, the server may have been put back to what it knew then, or others took its place. Hence F.
local function lookAtClock(epoch, margin)
  local passed = seconds - epoch.seen
  if passed == 0 then return end
  epoch.isLater, epoch.changed = true, true
  if passed < 0 then epoch.followed, epoch.sent = nil, nil end
  if passed > ${GAP_SECONDS} or passed < -(epoch.largest + 2) then
    epoch.cut = seconds + margin
    raise(epoch, 'clock')
    epoch.held = seconds + ${HOLD_SECONDS}
  end
  epoch.seen = seconds
end

-- Whether every hash is there that should be; those that are not were lost (a slot's move that was given up).
local function isWhole(epoch, prefix)
  if #epoch.numbers == 0 then return true end
  local keys = {}
  for at, text in ipairs(epoch.numbers) do keys[at] = prefix .. text end
  if redis.call('EXISTS', unpack(keys)) == #keys then return true end
  local kept = {}
  for at, text in ipairs(epoch.numbers) do
    if redis.call('EXISTS', keys[at]) == 1 then kept[#kept + 1] = text end
  end
  epoch.numbers = kept
  return false
end

-- A new moment covers what the verifier knows to have been consumed, also when its clock and ours went back since.
local function lookAtData(epoch, info, prefix, skew, margin, latest)
  local replid = string.match(info, 'master_replid:(%x+)')
  assert(replid, 'no master_replid')
  local why
  if not epoch.replid or not isWhole(epoch, prefix) then
    why = 'epoch_missing'
  elseif epoch.replid ~= replid then
    why = 'primary_changed'
  elseif epoch.largest > 0 and epoch.largest < skew then
    why = 'skew_raised'
  end
  if epoch.largest < skew then epoch.largest, epoch.changed = skew, true end
  if why then
    epoch.moment = math.max(epoch.moment, seconds + margin, latest - 2 * epoch.largest)
    if epoch.replid ~= replid then epoch.followed, epoch.sent = nil, nil end
    epoch.replid = replid
    raise(epoch, why)
  end
end

-- Once in a second. A replica that acknowledges more than was sent before a moment followed us after it, however long the
-- acknowledgement was under way and however long we stood still. (What Redis and INFO tell of a replica's lag is reckoned
-- from when its word was read, and Redis' own count of replicas is a second old.)
local function lookAtReplicas(epoch, info, needed)
  if needed == 0 or (epoch.sent and not epoch.isLater) then return end
  if epoch.sent then
    local followers = 0
    for offset in string.gmatch(info, 'state=online,offset=(%d+)') do
      if tonumber(offset) > epoch.sent then followers = followers + 1 end
    end
    if not (followers >= needed) then return end
    epoch.followed = epoch.marked
  end
  epoch.marked, epoch.sent = seconds, tonumber(string.match(info, 'master_repl_offset:(%d+)'))
  epoch.changed = true
end

local function isFollowed(epoch, needed)
  return needed == 0 or (epoch.followed and seconds - epoch.followed <= ${FOLLOWED_SECONDS})
end

-- The lower end is raised by the verifier that deletes, in the same step, and is written first.
local function forget(epoch, prefix)
  epoch.forgotten = {}
  if not epoch.isLater or seconds < epoch.held then return end
  local kept = {}
  for _, text in ipairs(epoch.numbers) do
    local number = tonumber(text)
    if (number + 1) * ${BUCKET_SECONDS} + 3 * epoch.largest + 2 <= seconds then
      epoch.forgotten[#epoch.forgotten + 1] = prefix .. text
      epoch.low = math.max(epoch.low, number + 1)
      epoch.changed = true
    else
      kept[#kept + 1] = text
    end
  end
  epoch.numbers = kept
end

local function save(key, epoch)
  if not epoch.changed then return end
  local text = string.format('%d %s %d %d %d %d %d %s %s', epoch.moment, epoch.replid, epoch.largest,
    epoch.cut, epoch.seen, epoch.held, epoch.low, epoch.why, table.concat(epoch.numbers, ','))
  if epoch.sent then text = string.format('%s %d %d %d', text, epoch.followed or 0, epoch.marked, epoch.sent) end
  redis.call('SET', key, text)
  epoch.changed = false
  if #epoch.forgotten > 0 then redis.call('UNLINK', unpack(epoch.forgotten)) end
  epoch.forgotten = {}
end

local function look(key, prefix, skew, margin, latest, needed)
  local epoch = read(key, prefix)
  local info = redis.call('INFO', 'replication')
  lookAtClock(epoch, margin)
  lookAtData(epoch, info, prefix, skew, margin, latest)
  lookAtReplicas(epoch, info, needed)
  forget(epoch, prefix)
  return epoch
end
`;

/** Comparisons are written so that a value that is not a number leads to a rejection. */
const CONSUME_LUA = `
local identifier, nonce = ARGV[1], ARGV[2]
local issued, expires, apart = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local now, quota = tonumber(ARGV[6]), tonumber(ARGV[7])
local skew, margin, latest, needed = tonumber(ARGV[8]), tonumber(ARGV[9]), tonumber(ARGV[10]), tonumber(ARGV[11])
local subjectQuota = tonumber(ARGV[12])

-- First, so that a server whose clock is wrong sets no epoch.
if not (math.abs(seconds - now) <= apart) then return ${CONSUME_CODES.clock} end
if not (expires <= seconds + ${MOST_AHEAD_SECONDS}) then return ${CONSUME_CODES.clock} end

local number = math.floor(expires / ${BUCKET_SECONDS})
local text = string.format('%d', number)
local prefix = string.sub(KEYS[2], 1, -1 - #text)
assert(prefix .. text == KEYS[2], 'not the hash of this proof')
local epoch = look(KEYS[1], prefix, skew, margin, latest, needed)

local function take(key, quota)
  local used = redis.call('INCR', key)
  if used == 1 then redis.call('EXPIRE', key, 60) end
  if used <= quota then return true end
  -- The clock went back, and the minute would not end.
  if redis.call('TTL', key) > 60 then redis.call('EXPIRE', key, 60) end
  return false
end

local function verdict()
  local isBeyond = issued > math.max(epoch.moment, epoch.cut) + 2 * epoch.largest
  -- Refused by a fence first: that says to sign anew.
  if not isBeyond then return epoch.raised and ${CONSUME_CODES.raised} or ${CONSUME_CODES.fenced} end
  if not isFollowed(epoch, needed) then return ${NOT_FOLLOWED} end
  if not (number >= epoch.low) then return ${CONSUME_CODES.fenced} end
  if not (expires + 3 * epoch.largest + 2 > seconds) then return ${CONSUME_CODES.fenced} end

  -- Also in the other hashes: an identifier is one, whatever times it comes with.
  local isListed = false
  for _, other in ipairs(epoch.numbers) do
    isListed = isListed or other == text
    if redis.call('HEXISTS', prefix .. other, identifier) == 1 then return ${CONSUME_CODES.replayed} end
  end
  if not isListed and #epoch.numbers >= ${MOST_BUCKETS} then return ${CONSUME_CODES.clock} end

  -- What the holder's quota denies does not count against the subject's.
  if not take(KEYS[3], quota) or not take(KEYS[4], subjectQuota) then return ${CONSUME_CODES.quota} end

  if not isListed then
    epoch.numbers[#epoch.numbers + 1] = text
    epoch.changed = true
  end
  save(KEYS[1], epoch)
  if redis.call('HSETNX', KEYS[2], identifier, nonce) == 1 then return ${CONSUME_CODES.consumed} end
  return ${CONSUME_CODES.replayed}
end

local code = verdict()
save(KEYS[1], epoch)
return code
`;

const PREPARE_LUA = `
local prefix, apart, now = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local skew, margin, latest, needed = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
if not (math.abs(seconds - now) <= apart) then return { seconds, 0, 0, 'clock', 0 } end
local epoch = look(KEYS[1], prefix, skew, margin, latest, needed)
save(KEYS[1], epoch)
-- A user without permission to delete gets the error now, not when the first hash expires. (Last: after a write that needs no memory
-- Redis lets a script write more, though it is full.)
redis.call('UNLINK', prefix .. 'none')
if not isFollowed(epoch, needed) then return ${NOT_FOLLOWED} end
return { seconds, math.max(epoch.moment, epoch.cut), epoch.largest, epoch.why, epoch.low * ${BUCKET_SECONDS} }
`;

export const REPLAY_SCRIPTS: ReplayScripts = {
  consume: redisScript(EPOCH_LUA + CONSUME_LUA, 4),
  prepare: redisScript(EPOCH_LUA + PREPARE_LUA, 1),
};
