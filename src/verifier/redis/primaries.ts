/**
 * Which server is the primary for what, now. One adapter for each kind of endpoint: a single server, a group
 * under Sentinels, a Cluster.
 */
import type { ConnectionSettings } from './connection.ts';
import { addressLabel, type RedisAddress, type RedisEndpoint, type RedisLogin } from './endpoint.ts';
import { type DeclaredFailoverSettings, examineFailover } from './failover-settings.ts';
import { RedisLink } from './link.ts';
import { findServerProblem, findServerWarning } from './server-requirements.ts';

export interface PrimariesOptions {
  readonly endpoint: RedisEndpoint;
  readonly commandTimeoutMs: number;
  readonly connectTimeoutMs: number;
  /** How often servers that are fit, and who is primary, are looked at again. */
  readonly recheckIntervalMs: number;
  readonly certificateAuthorities: string | undefined;
  readonly declaredFailoverSettings: DeclaredFailoverSettings;
  /** For the Sentinels themselves. */
  readonly sentinelLogin: RedisLogin | undefined;
  /** The user's own part of every check of a link; see `RedisLinkOptions`. */
  readonly prepare: (link: RedisLink) => Promise<string | undefined>;
}

export interface Primaries {
  /** Hash tags: keys with the same one lie on one primary. A shard is an index into them. */
  readonly tags: readonly string[];
  /** Undefined while nobody knows the shard's primary. The link may not be serving. */
  linkOf(shard: number): RedisLink | undefined;
  shardsOf(link: RedisLink): readonly number[];
  /** Every link that there is, without those that are being closed. */
  links(): readonly RedisLink[];
  /** One line about why no primary is known; undefined when one is for every shard. */
  problem(): string | undefined;
  /** Something was refused over this link: look soon at who is primary. */
  suspect(link: RedisLink): void;
  close(): Promise<void>;
}

/** The only tag where one server holds everything. */
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
 * A link to the primary at the address, checked as the kind of endpoint demands.
 * `replicas`: see `examineFailover`.
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
      const found = await examineFailover(link, kind, options.declaredFailoverSettings, replicas());
      return found.kind === 'fit'
        ? { ...found, warning: findServerWarning(info, addressLabel(address), kind) }
        : found;
    },
    prepare: options.prepare,
  });
}
