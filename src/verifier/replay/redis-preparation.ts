/**
 * The replay store's part of every look at a primary: the scripts are there, the clocks agree, and each shard's
 * epoch is, before the first proof of it is sent.
 */
import { classifyFault, describeRefusal } from '../redis/faults.ts';
import type { RedisLink } from '../redis/link.ts';
import type { ReplayKeys } from '../redis/replay-keys.ts';
import { REPLAY_SCRIPTS } from '../redis/replay-scripts.ts';
import { parseEpoch, type ReplayEpoch } from './redis-fences.ts';

/** What is needed of the link to a primary that is looked at. */
export type PreparedLink = Pick<
  RedisLink,
  'fenceMarginSeconds' | 'label' | 'loadScript' | 'neededReplicas' | 'runScript'
>;

export interface PreparationInputs {
  /** By shard; those that lie on this primary. */
  readonly keys: ReadonlyMap<number, ReplayKeys>;
  readonly nowSeconds: number;
  /** Largest skew that this verifier has seen in a claim; 0: none yet. */
  readonly largestSkewSeconds: number;
  /** Most difference of clocks. */
  readonly toleranceSeconds: number;
  /** Of what this verifier had consumed lately; 0: nothing. */
  readonly latestIssuedSeconds: number;
}

export interface Preparation {
  readonly epochs: ReadonlyMap<number, ReplayEpoch>;
  /** Shards that the primary refuses at this moment (its slot is moving), and with which code. */
  readonly refused: ReadonlyMap<number, string>;
  /** One line about why nothing may be sent to this primary; undefined when it may. */
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

/** The code of a refusal; undefined for an answer that is none of our script's. */
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
