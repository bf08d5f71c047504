/**
 * How long a primary that was replaced may go on accepting writes: that is F, by which a fence reaches beyond
 * the moment at which the new primary was first seen. It is bounded only where the server refuses writes
 * without enough replicas, so that is required.
 * Source: docs/protocol.md "Replay".
 */
import type { RedisEndpoint } from './endpoint.ts';
import { classifyFault } from './faults.ts';
import { parseCount, parsePairs } from './info.ts';
import type { Examination, RedisLink } from './link.ts';

/** What the operator says the servers are set to; counts only where Redis itself may not be asked. */
export interface DeclaredFailoverSettings {
  readonly minReplicasToWrite?: number | undefined;
  readonly minReplicasMaxLagSeconds?: number | undefined;
  readonly clusterNodeTimeoutMs?: number | undefined;
}

/** What is needed of the link to a server that is examined. */
export type ExaminedLink = Pick<RedisLink, 'call' | 'label'>;

const NAMES = {
  minReplicasToWrite: 'min-replicas-to-write',
  minReplicasMaxLagSeconds: 'min-replicas-max-lag',
  clusterNodeTimeoutMs: 'cluster-node-timeout',
} as const;

/** What a margin has beyond the servers' own limits: clocks tick in seconds, and looks come late. */
const SAFETY_SECONDS = 2;
/**
 * A primary takes proofs for so long after a moment since which its replicas are known to have followed. More than
 * two looks of a verifier where nobody else asks: one notes how far the stream is, the next one finds it acknowledged.
 */
export const FOLLOWED_SECONDS = 10;

/**
 * Whether the server may remember anything in a group where primaries are replaced, and F there.
 * `replicas`: how many the Sentinels know, if any may be promoted; undefined where there are no Sentinels. All of
 * them are needed: when one is promoted, the others may stay with the primary that it replaces, and that must
 * notice. (In a Cluster a primary that is cut off notices by itself, after the node time-out.)
 * Rejects as commands of the link do.
 */
export async function examineFailover(
  link: ExaminedLink,
  kind: RedisEndpoint['kind'],
  declared: DeclaredFailoverSettings,
  replicas: number | undefined,
): Promise<Examination> {
  if (kind === 'single') return { kind: 'fit', fenceMarginSeconds: 0, neededReplicas: 0 };
  const known = (await askedSettings(link)) ?? declared;
  const { minReplicasToWrite, minReplicasMaxLagSeconds, clusterNodeTimeoutMs } = known;
  if (minReplicasToWrite === undefined) return unknown(link, 'minReplicasToWrite');
  if (minReplicasMaxLagSeconds === undefined) return unknown(link, 'minReplicasMaxLagSeconds');
  const required = kind === 'cluster' ? 1 : (replicas ?? 1);
  if (minReplicasToWrite < required) {
    return unusable(
      `Redis at ${link.label} has min-replicas-to-write ${minReplicasToWrite}, and needs ${required} at least: ` +
        'a primary that was replaced would go on accepting writes',
    );
  }
  if (required > 0 && minReplicasMaxLagSeconds < 1) {
    return unusable(
      `Redis at ${link.label} has min-replicas-max-lag 0, which switches min-replicas-to-write off`,
    );
  }
  if (kind === 'sentinel') return withMargin(minReplicasMaxLagSeconds, minReplicasToWrite);
  if (clusterNodeTimeoutMs === undefined) return unknown(link, 'clusterNodeTimeoutMs');
  const limitSeconds = Math.max(minReplicasMaxLagSeconds, Math.ceil(clusterNodeTimeoutMs / 1000));
  return withMargin(limitSeconds, minReplicasToWrite);
}

/** Undefined where the server, or whoever runs it, refuses to tell. */
async function askedSettings(link: ExaminedLink): Promise<DeclaredFailoverSettings | undefined> {
  try {
    const fields = parsePairs(await link.call('CONFIG', 'GET', ...Object.values(NAMES)));
    return {
      minReplicasToWrite: parseCount(fields.get(NAMES.minReplicasToWrite)),
      minReplicasMaxLagSeconds: parseCount(fields.get(NAMES.minReplicasMaxLagSeconds)),
      clusterNodeTimeoutMs: parseCount(fields.get(NAMES.clusterNodeTimeoutMs)),
    };
  } catch (error) {
    if (classifyFault(error).kind === 'no_answer') throw error;
    return undefined;
  }
}

function withMargin(limitSeconds: number, neededReplicas: number): Examination {
  const fenceMarginSeconds = Math.max(limitSeconds, FOLLOWED_SECONDS) + SAFETY_SECONDS;
  return { kind: 'fit', fenceMarginSeconds, neededReplicas };
}

function unusable(problem: string): Examination {
  return { kind: 'unfit', problem };
}

function unknown(link: ExaminedLink, name: keyof typeof NAMES): Examination {
  const setting = NAMES[name];
  return unusable(
    `Redis at ${link.label} does not tell its ${setting} (CONFIG GET): give --redis-${setting}`,
  );
}
