/**
 * The port for finding the current primary of each shard. There is one adapter for each kind of endpoint: a single
 * server, a group under Sentinels, a Cluster.
 */
import type { ConnectionSettings } from './client.ts';
import { addressLabel, type RedisAddress, type RedisEndpoint, type RedisLogin } from './endpoint.ts';
import { type DeclaredFailoverSettings, examineFailover } from './failover-settings.ts';
import { RedisLink } from './link.ts';
import { countOwnReplicas, findServerProblem } from './server-requirements.ts';

export interface PrimariesOptions {
  readonly endpoint: RedisEndpoint;
  readonly commandTimeoutMs: number;
  readonly connectTimeoutMs: number;
  /** Interval between checks of servers that are fit, and of the topology. */
  readonly recheckIntervalMs: number;
  readonly certificateAuthorities: string | undefined;
  readonly declaredFailoverSettings: DeclaredFailoverSettings;
  /** Login for the Sentinels themselves. */
  readonly sentinelLogin: RedisLogin | undefined;
  /** Additional check of each link; see `RedisLinkOptions`. */
  readonly prepare: (link: RedisLink) => Promise<string | undefined>;
}

export interface Primaries {
  /** Hash tags: keys with the same tag are on one primary. A shard is an index into this list. */
  readonly tags: readonly string[];
  /** Undefined while the shard's primary is unknown. The link may not be serving. */
  linkOf(shard: number): RedisLink | undefined;
  shardsOf(link: RedisLink): readonly number[];
  /** All links, except those that are closing. */
  links(): readonly RedisLink[];
  /** One line that says why no primary is known; undefined when every shard has one. */
  problem(): string | undefined;
  /** The server rejected a command over this link: check the topology soon. */
  suspect(link: RedisLink): void;
  close(): Promise<void>;
}

/** The only tag when one server stores everything. */
export const ONLY_TAG = '0';

export function dataConnection(options: PrimariesOptions): ConnectionSettings {
  const { endpoint } = options;
  return {
    tls: endpoint.tls,
    login: endpoint.login,
    databaseNumber: endpoint.kind === 'cluster' ? 0 : endpoint.databaseNumber,
    commandTimeoutMs: options.commandTimeoutMs,
    connectTimeoutMs: options.connectTimeoutMs,
    certificateAuthorities: options.certificateAuthorities,
  };
}

/**
 * Opens a link to the primary at the address, with the checks that the kind of endpoint requires. `replicas`: the number
 * that Sentinels know, see `examineFailover`.
 */
export function openPrimaryLink(
  options: PrimariesOptions,
  address: RedisAddress,
  replicas: () => number | undefined,
): RedisLink {
  const { kind } = options.endpoint;
  return new RedisLink({
    connection: { ...dataConnection(options), address },
    recheckIntervalMs: options.recheckIntervalMs,
    examine: async (link) => {
      const info = await link.call('INFO');
      const problem = findServerProblem(info, addressLabel(address), kind);
      if (problem !== undefined) return { kind: 'unfit', problem };
      const followers = kind === 'single' ? countOwnReplicas(info) : replicas();
      return await examineFailover(link, kind, options.declaredFailoverSettings, followers);
    },
    prepare: options.prepare,
  });
}
