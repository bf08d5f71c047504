/**
 * Requirements on a Redis server that stores records, checked from its `INFO`.
 * Source: docs/design/protocol.md "Replay".
 */
import type { RedisEndpoint } from './endpoint.ts';
import { parseCount, parseInfo } from './info.ts';

const MIN_MAJOR_VERSION = 7;

/**
 * One line about the first requirement that the server does not meet; undefined when it meets all. `info` is the reply
 * to `INFO`; `kind` says where its address came from.
 */
export function findServerProblem(
  info: unknown,
  label: string,
  kind: RedisEndpoint['kind'],
): string | undefined {
  const fields = parseInfo(info);
  const version = fields.get('redis_version');
  if (version === undefined) return `the server at ${label} does not answer as Redis does`;
  if (fields.get('redis_mode') === 'sentinel') {
    return `the server at ${label} is a Redis Sentinel: give it as redis-sentinel://HOST:PORT,…/NAME`;
  }
  const isClustered = fields.get('cluster_enabled') !== '0';
  if (isClustered && kind !== 'cluster') {
    return `Redis at ${label} runs in Cluster mode: give it as redis-cluster://HOST:PORT,…`;
  }
  if (!isClustered && kind === 'cluster') {
    return `Redis at ${label} does not run in Cluster mode: give it as redis://HOST:PORT`;
  }
  if (!(Number.parseInt(version, 10) >= MIN_MAJOR_VERSION)) {
    return `Redis at ${label} is older than version ${MIN_MAJOR_VERSION}`;
  }
  if (fields.get('loading') !== '0') return `Redis at ${label} is loading its data`;
  if (fields.get('role') !== 'master') return `Redis at ${label} is a replica${REPLICA_ADVICE[kind]}`;
  if (fields.get('maxmemory_policy') !== 'noeviction') {
    return `Redis at ${label} must have maxmemory-policy noeviction: it may forget identifiers that are in use`;
  }
  return undefined;
}

/**
 * Number of replicas of a server that another may replace behind its address; undefined for one that has no replica and
 * never was one, so that no other server has its records. A field that the server omits proves neither.
 */
export function countOwnReplicas(info: unknown): number | undefined {
  const fields = parseInfo(info);
  const replicas = parseCount(fields.get('connected_slaves')) ?? 1;
  const formerId = fields.get('master_replid2') ?? '';
  return replicas === 0 && /^0+$/.test(formerId) ? undefined : replicas;
}

const REPLICA_ADVICE: { readonly [K in RedisEndpoint['kind']]: string } = {
  single: ': its address must lead to the primary',
  sentinel: ', though the Sentinels call it the primary: a failover is under way',
  cluster: ', though the Cluster calls it a primary: a failover is under way',
};
