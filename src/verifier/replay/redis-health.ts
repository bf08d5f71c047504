/** Reports whether the store in Redis accepts proofs now, and why it rejects all or some of them. */
import type { RedisLink } from '../redis/link.ts';
import type { Primaries } from '../redis/primaries.ts';
import { describeFence, type RedisFences } from './redis-fences.ts';
import type { ReplayFence, ReplayHealth, ReplayLinks } from './store.ts';

/** The part of the primaries that the health check reads. */
export interface SeenPrimaries extends Pick<Primaries, 'problem' | 'tags'> {
  linkOf(shard: number): Pick<RedisLink, 'isServing'> | undefined;
  links(): readonly Pick<RedisLink, 'isServing' | 'problem' | 'warning'>[];
}

/** `refusedShards`: shards that their primary rejected at the last look, with the error code. */
export function redisHealth(
  primaries: SeenPrimaries,
  fences: RedisFences,
  refusedShards: ReadonlyMap<number, string>,
  nowSeconds: number,
): ReplayHealth {
  let fence: ReplayFence | undefined;
  let servedShards = 0;
  for (const shard of primaries.tags.keys()) {
    const isServed = primaries.linkOf(shard)?.isServing === true && !refusedShards.has(shard);
    if (!isServed || !fences.isKnown(shard)) continue;
    servedShards += 1;
    const up = fences.up(shard, nowSeconds);
    if (up !== undefined && (fence === undefined || up.secondsLeft > fence.secondsLeft)) fence = up;
  }
  const details = { links: countLinks(primaries), ...(fence === undefined ? {} : { fence }) };
  const trouble = findTrouble(primaries, refusedShards);
  if (servedShards === 0) {
    return { ready: false, problem: trouble ?? 'Redis is being looked at', ...details };
  }
  const fenced = fence === undefined ? undefined : describeFence(fence);
  if (fenced !== undefined && fences.isStarting(nowSeconds)) {
    return { ready: false, problem: fenced, ...details };
  }
  const part =
    trouble && `of ${primaries.tags.length} parts of the holders ${servedShards} are served: ${trouble}`;
  const doubt = primaries.links().find((link) => link.warning !== undefined)?.warning;
  const warning = [part, fenced, doubt].filter((text) => text !== undefined).join('; ');
  return warning === '' ? { ready: true, ...details } : { ready: true, warning, ...details };
}

function findTrouble(
  primaries: SeenPrimaries,
  refusedShards: ReadonlyMap<number, string>,
): string | undefined {
  const problem = primaries.problem();
  if (problem !== undefined) return problem;
  for (const link of primaries.links()) {
    if (link.problem !== undefined) return link.problem;
  }
  const [code] = refusedShards.values();
  return code === undefined ? undefined : `Redis refuses some keys of the replay store (${code})`;
}

function countLinks(primaries: SeenPrimaries): ReplayLinks {
  const links = primaries.links();
  const serving = links.filter((link) => link.isServing).length;
  return { serving, unfit: links.length - serving };
}
