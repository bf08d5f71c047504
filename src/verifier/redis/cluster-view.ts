/** One node's view of the Cluster: epoch, state and shards. */
import { MAX_PORT } from '../../protocol/limits.ts';
import type { RedisAddress } from './endpoint.ts';
import { parseCount, parseInfo } from './info.ts';

export interface ClusterView {
  /** Rises with every failover and with every slot that moves; a partitioned node still reports an old one. */
  readonly currentEpoch: number;
  /** Whether the node reports `cluster_state:ok`; a partitioned node does not. */
  readonly isOk: boolean;
  readonly shards: ShardMap;
}

type AskCluster = (command: 'CLUSTER', word: 'INFO' | 'SLOTS') => Promise<unknown>;

/** Returns undefined when the replies are not those of a Cluster. Rejects when `ask` does. */
export async function askClusterView(ask: AskCluster, asked: RedisAddress): Promise<ClusterView | undefined> {
  const [info, slots] = await Promise.all([ask('CLUSTER', 'INFO'), ask('CLUSTER', 'SLOTS')]);
  const fields = parseInfo(info);
  const currentEpoch = parseCount(fields.get('cluster_current_epoch'));
  const shards = parseClusterSlots(slots, asked);
  if (currentEpoch === undefined || shards === undefined) return undefined;
  return { currentEpoch, isOk: fields.get('cluster_state') === 'ok', shards };
}

/** Picks the view to use: among those with state ok, the one with the latest epoch. On a tie, the first. */
export function bestView(views: readonly (ClusterView | undefined)[]): ClusterView | undefined {
  let best: ClusterView | undefined;
  for (const view of views) {
    if (view !== undefined && (best === undefined || isBetter(view, best))) best = view;
  }
  return best;
}

function isBetter(view: ClusterView, than: ClusterView): boolean {
  if (view.isOk !== than.isOk) return view.isOk;
  return view.currentEpoch > than.currentEpoch;
}

/**
 * Slots of a Redis Cluster: the slot of a key, the hash tags that spread a site's holders over the slots, and the
 * parser of `CLUSTER SLOTS`.
 */

const SLOT_COUNT = 16_384;
const SHARD_COUNT = 64;
const SLOTS_PER_SHARD = SLOT_COUNT / SHARD_COUNT;
/** CRC-16/XMODEM: polynomial 0x1021, initial value 0, no reflection. Redis Cluster specification, appendix A. */
const CRC16_POLYNOMIAL = 0x1021;

/** The slot of all keys with this hash tag. */
export function slotOfTag(tag: string): number {
  let crc = 0;
  for (const byte of Buffer.from(tag)) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit += 1) {
      crc = crc & 0x8000 ? ((crc << 1) ^ CRC16_POLYNOMIAL) & 0xffff : (crc << 1) & 0xffff;
    }
  }
  return crc % SLOT_COUNT;
}

/**
 * 64 evenly spread tags. The tag at index i is the smallest number whose slot is in the i-th 64th of all slots, so
 * primaries with equal shares of slots have equal shares of holders.
 */
export const CLUSTER_TAGS: readonly string[] = findTags();

function findTags(): readonly string[] {
  const tags = new Map<number, string>();
  for (let number = 0; tags.size < SHARD_COUNT; number += 1) {
    const tag = `${number}`;
    const shard = Math.floor(slotOfTag(tag) / SLOTS_PER_SHARD);
    if (!tags.has(shard)) tags.set(shard, tag);
  }
  return Array.from({ length: SHARD_COUNT }, (_, shard) => tags.get(shard) ?? '');
}

const CLUSTER_TAG_SLOTS: readonly number[] = CLUSTER_TAGS.map(slotOfTag);

/** Each shard's primary; undefined when no node serves its slot. */
export type ShardMap = readonly (RedisAddress | undefined)[];

/**
 * Parses the reply to `CLUSTER SLOTS`: `[first, last, [host, port, …] of the primary, replicas …]` for each range.
 * `asked` is used when a node does not know its own host. Returns undefined for any other reply.
 */
export function parseClusterSlots(reply: unknown, asked: RedisAddress): ShardMap | undefined {
  if (!Array.isArray(reply)) return undefined;
  const map: (RedisAddress | undefined)[] = CLUSTER_TAGS.map(() => undefined);
  for (const range of reply) {
    if (!Array.isArray(range)) return undefined;
    const [first, last, primary]: readonly unknown[] = range;
    if (typeof first !== 'number' || typeof last !== 'number') return undefined;
    const address = parseNode(primary, asked);
    for (const [shard, slot] of CLUSTER_TAG_SLOTS.entries()) {
      if (slot >= first && slot <= last) map[shard] = address;
    }
  }
  return map;
}

function parseNode(node: unknown, asked: RedisAddress): RedisAddress | undefined {
  if (!Array.isArray(node)) return undefined;
  const [host, port]: readonly unknown[] = node;
  if (typeof port !== 'number' || !Number.isInteger(port) || port < 1 || port > MAX_PORT) return undefined;
  // Redis 7: null means the host that was asked, `?` means that the node has no host name for clients.
  if (host === null || host === '') return { host: asked.host, port };
  return typeof host === 'string' && host !== '?' ? { host, port } : undefined;
}
