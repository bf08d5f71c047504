/**
 * Computes F, the time for which a replaced primary may still accept writes. The fence reaches F beyond the moment at
 * which the new primary was first seen. F is bounded only if the server rejects writes without enough replicas, so that
 * setting is required.
 * Source: docs/design/protocol.md "Replay".
 */
import type { RedisEndpoint } from './endpoint.ts';
import { classifyFault } from './faults.ts';
import { parseCount, parsePairs } from './info.ts';
import type { Examination, RedisLink } from './link.ts';

/** Server settings that the operator declares; used only where Redis refuses `CONFIG GET`. */
export interface DeclaredFailoverSettings {
  readonly minReplicasToWrite?: number | undefined;
  readonly minReplicasMaxLagSeconds?: number | undefined;
  readonly clusterNodeTimeoutMs?: number | undefined;
}

type Fit = Extract<Examination, { readonly kind: 'fit' }>;

/** The part of a link that the examination uses. */
export type ExaminedLink = Pick<RedisLink, 'call' | 'label'>;

const NAMES = {
  minReplicasToWrite: 'min-replicas-to-write',
  minReplicasMaxLagSeconds: 'min-replicas-max-lag',
  clusterNodeTimeoutMs: 'cluster-node-timeout',
} as const;

/** Safety margin beyond the servers' own limits: clocks tick in seconds, and checks run late. */
const SAFETY_SECONDS = 2;
/**
 * How long a primary accepts proofs after the last moment at which its replicas are known to have followed. It covers
 * two checks of a single verifier: the first records the replication offset, the second finds it acknowledged.
 */
export const FOLLOWED_SECONDS = 10;

/**
 * Checks whether the server may store records in a deployment with failover, and computes F. `replicas`: number of
 * replicas that the Sentinels know, if any may be promoted; undefined in a Cluster; for a single server see
 * `countOwnReplicas`. All of them must follow. When one is promoted, the others may stay with the replaced primary, which
 * then must notice. In a Cluster a partitioned primary notices by itself, after the node timeout. Rejects when a command
 * of the link does.
 */
export async function examineFailover(
  link: ExaminedLink,
  kind: RedisEndpoint['kind'],
  declared: DeclaredFailoverSettings,
  replicas: number | undefined,
): Promise<Examination> {
  if (kind === 'single') return await examineSingle(link, declared, replicas);
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

/**
 * For a single address the operator decides to which server it leads. No other server replaces one without replicas.
 * Otherwise F covers the time in which verifiers find that the address leads elsewhere. Only `min-replicas-to-write` stops a primary
 * that was cut off together with a verifier, so it is not required, but its lack is reported.
 */
async function examineSingle(
  link: ExaminedLink,
  declared: DeclaredFailoverSettings,
  replicas: number | undefined,
): Promise<Examination> {
  if (replicas === undefined) return { kind: 'fit', fenceMarginSeconds: 0, neededReplicas: 0 };
  const { minReplicasToWrite = 0, minReplicasMaxLagSeconds = 0 } = (await askedSettings(link)) ?? declared;
  const needed = minReplicasMaxLagSeconds > 0 ? minReplicasToWrite : 0;
  const found = withMargin(minReplicasMaxLagSeconds, needed);
  if (needed >= replicas) return found;
  const warning =
    `Redis at ${link.label} has replicas, and min-replicas-to-write below their number (${replicas}): if one takes its ` +
    'place while this one still accepts writes, used proofs may pass again';
  return { ...found, warning };
}

/** Undefined when the server refuses `CONFIG GET`. */
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

function withMargin(limitSeconds: number, neededReplicas: number): Fit {
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
