/**
 * Tracks the primaries of a Redis Cluster: which node serves which shard, and a link to each of those nodes.
 * Redirections are not followed: a command that receives one is rejected and triggers a new look at the topology.
 */
import { createRedisClient } from './client.ts';
import { askClusterView, bestView, CLUSTER_TAGS, type ClusterView } from './cluster-view.ts';
import { addressLabel, type ClusterEndpoint, type RedisAddress } from './endpoint.ts';
import { describeConnectionError } from './faults.ts';
import type { RedisLink } from './link.ts';
import { PeriodicTask } from './periodic-task.ts';
import { dataConnection, openPrimaryLink, type Primaries, type PrimariesOptions } from './primaries.ts';

/** A node that does not answer must not delay the answers of the others. */
const NODE_TIMEOUT_MS = 500;
const MAX_LOOK_INTERVAL_MS = 5_000;
/** Interval while no link answers. */
const SEARCH_INTERVAL_MS = 500;

export function openClusterPrimaries(options: PrimariesOptions, endpoint: ClusterEndpoint): Primaries {
  return new ClusterPrimaries(options, endpoint);
}

interface Node {
  readonly address: RedisAddress;
  readonly link: RedisLink;
  shards: readonly number[];
}

class ClusterPrimaries implements Primaries {
  readonly tags = CLUSTER_TAGS;
  readonly #options: PrimariesOptions;
  readonly #seeds: readonly RedisAddress[];
  readonly #look: PeriodicTask;
  #nodes: ReadonlyMap<string, Node> = new Map();
  #linkOfShard: readonly (RedisLink | undefined)[] = [];
  /** The node that redirected last; it knows the latest topology. */
  #informant: RedisLink | undefined;
  #problem = 'asking the Cluster who has which slots';

  constructor(options: PrimariesOptions, endpoint: ClusterEndpoint) {
    this.#options = options;
    this.#seeds = endpoint.seeds;
    this.#look = new PeriodicTask(Math.min(options.recheckIntervalMs, MAX_LOOK_INTERVAL_MS), () =>
      this.#lookOnce(),
    );
  }

  linkOf(shard: number): RedisLink | undefined {
    return this.#linkOfShard[shard];
  }

  shardsOf(link: RedisLink): readonly number[] {
    return this.#nodes.get(link.label)?.shards ?? [];
  }

  links(): readonly RedisLink[] {
    return [...this.#nodes.values()].map(({ link }) => link);
  }

  problem(): string | undefined {
    const served = this.#linkOfShard.filter((link) => link !== undefined).length;
    if (served === CLUSTER_TAGS.length) return undefined;
    return served === 0 ? this.#problem : 'some slots of the Cluster have no primary';
  }

  suspect(link: RedisLink): void {
    this.#informant = link;
    this.#look.soon();
  }

  async close(): Promise<void> {
    await this.#look.stop();
    await Promise.all(this.links().map((link) => link.close()));
  }

  async #lookOnce(): Promise<void> {
    const view = bestView(await this.#askLinks()) ?? bestView(await this.#askStrangers());
    if (this.#look.isStopped) return;
    if (view !== undefined) this.#take(view);
    if (!this.links().some((link) => link.isConnected))
      setTimeout(() => this.#look.soon(), SEARCH_INTERVAL_MS).unref();
  }

  #askLinks(): Promise<readonly (ClusterView | undefined)[]> {
    const nodes = [...this.#nodes.values()].filter(({ link }) => link.isConnected);
    const informant = this.#informant;
    nodes.sort((a, b) => Number(b.link === informant) - Number(a.link === informant));
    this.#informant = undefined;
    return Promise.all(
      nodes.map(({ address, link }) =>
        askClusterView((...words) => link.call(...words), address).catch(() => undefined),
      ),
    );
  }

  /** Asks the seeds and all known primaries, over connections for this one question. */
  #askStrangers(): Promise<readonly (ClusterView | undefined)[]> {
    const known = [...this.#nodes.values()].map(({ address }) => address);
    const addresses = new Map([...this.#seeds, ...known].map((address) => [addressLabel(address), address]));
    return Promise.all([...addresses.values()].map((address) => this.#askStranger(address)));
  }

  async #askStranger(address: RedisAddress): Promise<ClusterView | undefined> {
    const label = addressLabel(address);
    const { connectTimeoutMs } = this.#options;
    const client = createRedisClient({
      ...dataConnection(this.#options),
      address,
      commandTimeoutMs: Math.min(NODE_TIMEOUT_MS, connectTimeoutMs),
    });
    // The rejection of `connect` says only that there is no connection.
    let cause: unknown;
    client.on('error', (error: unknown) => {
      cause ??= error;
      // Otherwise ioredis would reconnect.
      client.disconnect();
    });
    try {
      await client.connect();
      return await askClusterView((...words) => client.call(...words), address);
    } catch (error) {
      this.#problem = describeConnectionError(cause ?? error, label);
      return undefined;
    } finally {
      client.disconnect();
    }
  }

  #take({ shards }: ClusterView): void {
    const shardsOf = new Map<string, number[]>();
    const addresses = new Map<string, RedisAddress>();
    for (const [shard, address] of shards.entries()) {
      if (address === undefined) continue;
      const label = addressLabel(address);
      addresses.set(label, address);
      shardsOf.set(label, [...(shardsOf.get(label) ?? []), shard]);
    }
    const before = this.#nodes;
    const nodes = new Map<string, Node>();
    for (const [label, address] of addresses) {
      nodes.set(label, before.get(label) ?? { address, link: this.#open(address), shards: [] });
    }
    this.#nodes = nodes;
    this.#linkOfShard = shards.map((address) => address && nodes.get(addressLabel(address))?.link);
    for (const [label, node] of nodes) giveShards(node, shardsOf.get(label) ?? []);
    for (const [label, { link }] of before) {
      if (!nodes.has(label)) void link.close();
    }
  }

  #open(address: RedisAddress): RedisLink {
    return openPrimaryLink(this.#options, address, () => undefined);
  }
}

/** Requalifies a primary that gained a slot before any command about that slot is sent to it. */
function giveShards(node: Node, shards: readonly number[]): void {
  const before = new Set(node.shards);
  const hasMore = shards.some((shard) => !before.has(shard));
  node.shards = shards;
  if (hasMore && before.size > 0) node.link.requalify();
}
