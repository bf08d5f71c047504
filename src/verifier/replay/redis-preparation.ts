/**
 * The replay store's part of every check of a primary: loads the scripts, compares the clocks, and prepares each
 * shard's epoch before the first proof is sent.
 */
import { classifyFault, describeRefusal } from '../redis/faults.ts';
import type { RedisLink } from '../redis/link.ts';
import type { ReplayKeys } from '../redis/replay-keys.ts';
import { REPLAY_SCRIPTS } from '../redis/replay-scripts.ts';
import { parseEpoch, type ReplayEpoch } from './redis-fences.ts';

/** The part of a primary's link that this check uses. */
export type PreparedLink = Pick<
  RedisLink,
  'fenceMarginSeconds' | 'label' | 'loadScript' | 'neededReplicas' | 'runScript'
>;

export interface PreparationInputs {
  /** Keys of the shards on this primary, by shard. */
  readonly keys: ReadonlyMap<number, ReplayKeys>;
  readonly nowSeconds: number;
  /** Largest skew that this verifier has seen in a claim; 0: none yet. */
  readonly largestSkewSeconds: number;
  /** Maximum difference of clocks. */
  readonly toleranceSeconds: number;
  /** Latest issued-at of the proofs that this verifier consumed recently; 0 when there were none. */
  readonly latestIssuedSeconds: number;
}

export interface Preparation {
  readonly epochs: ReadonlyMap<number, ReplayEpoch>;
  /** Shards that the primary rejects now, because the slot is moving, with the error code. */
  readonly refused: ReadonlyMap<number, string>;
  /** One line that says why nothing may be sent to this primary; undefined when it may. */
  readonly problem: string | undefined;
}

/** Rejects when the server does not answer. */
export async function prepareShards(link: PreparedLink, inputs: PreparationInputs): Promise<Preparation> {
  const epochs = new Map<number, ReplayEpoch>();
  const refused = new Map<number, string>();
  await link.loadScript(REPLAY_SCRIPTS.consume);
  await link.loadScript(REPLAY_SCRIPTS.prepare);
  const shards = [...inputs.keys].map(async ([shard, keys]) => {
    const found = await prepareShard(link, keys, inputs);
    if (typeof found === 'string') refused.set(shard, found);
    else if (found !== undefined) epochs.set(shard, found);
  });
  await Promise.all(shards);
  return { epochs, refused, problem: findProblem(link, inputs, epochs, refused) };
}

/** Returns the shard's epoch, the code of an error reply, or undefined for a reply that our script cannot give. */
async function prepareShard(
  link: PreparedLink,
  keys: ReplayKeys,
  inputs: PreparationInputs,
): Promise<ReplayEpoch | string | undefined> {
  try {
    const reply = await link.runScript(REPLAY_SCRIPTS.prepare, [
      keys.epoch,
      keys.bucketPrefix,
      inputs.toleranceSeconds,
      inputs.nowSeconds,
      inputs.largestSkewSeconds,
      link.fenceMarginSeconds,
      inputs.latestIssuedSeconds,
      link.neededReplicas,
    ]);
    return parseEpoch(reply);
  } catch (error) {
    const fault = classifyFault(error);
    if (fault.kind === 'no_answer') throw error;
    return fault.code;
  }
}

function findProblem(
  link: PreparedLink,
  { keys, nowSeconds, toleranceSeconds }: PreparationInputs,
  epochs: ReadonlyMap<number, ReplayEpoch>,
  refused: ReadonlyMap<number, string>,
): string | undefined {
  const [first] = epochs.values();
  if (first === undefined) {
    const [code] = refused.values();
    if (code !== undefined) return describeRefusal(code, link.label);
    if (keys.size === 0) return undefined;
  }
  if (epochs.size + refused.size < keys.size) return 'Redis does not answer the replay store as it should';
  const apart = [...epochs.values()].find(({ momentSeconds }) => momentSeconds === 0);
  if (apart === undefined) return undefined;
  const apartSeconds = Math.abs(apart.serverSeconds - nowSeconds);
  return `the clocks of Redis and of this verifier are ${apartSeconds} s apart, more than ${toleranceSeconds} s`;
}
