/**
 * A real Redis Cluster on free loopback ports, for tests: three primaries with a replica each. Gates in front of each node's
 * client port and cluster bus can cut the network between them. Only the nodes' view of the cluster survives a restart.
 */

import { waitUntil } from '../wait.ts';
import {
  type ClusterNode,
  type ClusterOptions,
  follow,
  introduce,
  NODE_COUNT,
  PRIMARY_COUNT,
  SLOT_COUNT,
  startNode,
  stopAll,
} from './redis-cluster-nodes.ts';
import { type GateSource, isOfProcess } from './redis-gate.ts';
import { infoFields, type RedisReply } from './redis-reply.ts';

/** `CLUSTER_MF_TIMEOUT` of Redis is 5 s. */
const FAILOVER_GIVEN_UP_MS = 6_000;
const MIGRATE_TIMEOUT_MS = 5_000;

export type { ClusterNode, ClusterOptions };

export class TestRedisCluster {
  readonly #nodes: ClusterNode[];
  readonly #options: ClusterOptions;

  private constructor(nodes: ClusterNode[], options: ClusterOptions) {
    this.#nodes = nodes;
    this.#options = options;
  }

  get nodes(): readonly ClusterNode[] {
    return this.#nodes;
  }

  /** Takes some seconds: all slots are served and all replicas follow when it resolves. */
  static async start(options: ClusterOptions = {}): Promise<TestRedisCluster> {
    const started: ClusterNode[] = [];
    try {
      for (let at = 0; at < NODE_COUNT; at += 1) started.push(await startNode(at, options));
      await introduce(started);
      const fake = new TestRedisCluster(started, options);
      await fake.settled();
      return fake;
    } catch (error) {
      await stopAll(started);
      throw error;
    }
  }

  /** `redis-cluster://HOST:PORT,…` */
  get url(): string {
    return `redis-cluster://${this.nodes.map(({ gate }) => `127.0.0.1:${gate.port}`).join(',')}`;
  }

  async slotOf(key: string): Promise<number> {
    return Number(await this.nodes[0]?.server.ask('CLUSTER', 'KEYSLOT', key));
  }

  /** The node that serves the slot, as a running node sees it. */
  async ownerOf(slot: number): Promise<ClusterNode> {
    const view = this.nodes.find(({ server }) => server.isRunning);
    const ranges = await view?.server.ask('CLUSTER', 'SLOTS');
    return this.#nodeWithId(ownerIn(ranges, slot) ?? '');
  }

  async primaries(): Promise<readonly ClusterNode[]> {
    return (await this.#byRole()).filter(({ role }) => role === 'master').map(({ node }) => node);
  }

  async replicaOf(primary: ClusterNode): Promise<ClusterNode> {
    const ranges = await primary.server.ask('CLUSTER', 'SLOTS');
    const own = (Array.isArray(ranges) ? ranges : []).map(idsOfRange).find(([id]) => id === primary.id);
    return this.#nodeWithId(own?.[1] ?? '');
  }

  /** One more; resolves when it follows. */
  async addReplica(primary: ClusterNode): Promise<void> {
    const added = await startNode(this.#nodes.length, this.#options);
    this.#nodes.push(added);
    const { gate, busGate } = added;
    await primary.server.ask('CLUSTER', 'MEET', '127.0.0.1', `${gate.port}`, `${busGate.port}`);
    await follow(added, primary.id);
    await this.settled();
  }

  /** The slot goes to another primary with its keys. */
  async moveSlot(slot: number, target: ClusterNode): Promise<void> {
    await this.beginMove(slot, target);
    await this.moveKeys(slot, target);
    await this.finishMove(slot, target);
  }

  /** Another primary claims the slot, none of its keys come along, and the owner drops them when it hears of it. */
  async moveSlotWithoutKeys(slot: number, target: ClusterNode): Promise<void> {
    const owner = await this.ownerOf(slot);
    // The end of an import is what lets a claim count for more than the owner's.
    await target.server.ask('CLUSTER', 'SETSLOT', `${slot}`, 'IMPORTING', owner.id);
    await target.server.ask('CLUSTER', 'SETSLOT', `${slot}`, 'NODE', target.id);
    await waitUntil(() => this.#agreeOn(slot, target));
  }

  /** From now on the owner answers for keys that it has, and sends (ASK) to the target for others. */
  async beginMove(slot: number, target: ClusterNode): Promise<void> {
    const owner = await this.ownerOf(slot);
    await target.server.ask('CLUSTER', 'SETSLOT', `${slot}`, 'IMPORTING', owner.id);
    await owner.server.ask('CLUSTER', 'SETSLOT', `${slot}`, 'MIGRATING', target.id);
  }

  /**
   * A move that was given up leaves keys with the target, which the owner may have written anew since: the owner's counts.
   * @param mostKeys default: all
   */
  async moveKeys(slot: number, target: ClusterNode, mostKeys = Number.POSITIVE_INFINITY): Promise<void> {
    const owner = await this.ownerOf(slot);
    for (let moved = 0; moved < mostKeys; ) {
      const count = Math.min(100, mostKeys - moved);
      const keys = await owner.server.ask('CLUSTER', 'GETKEYSINSLOT', `${slot}`, `${count}`);
      if (!Array.isArray(keys) || keys.length === 0) return;
      const where = ['127.0.0.1', `${target.server.port}`, '', '0', `${MIGRATE_TIMEOUT_MS}`];
      await owner.server.ask('MIGRATE', ...where, 'REPLACE', 'KEYS', ...keys.map(String));
      moved += keys.length;
    }
  }

  /** The target first, so that no moment is without an owner; resolves when all who run agree. */
  async finishMove(slot: number, target: ClusterNode): Promise<void> {
    const others = (await this.primaries()).filter((node) => node !== target);
    for (const { server } of [target, ...others]) {
      await server.ask('CLUSTER', 'SETSLOT', `${slot}`, 'NODE', target.id);
    }
    await waitUntil(() => this.#agreeOn(slot, target));
  }

  /**
   * Promotes the replica: when it has caught up; with `FORCE`, by vote, with the data it has; with `TAKEOVER`, without a vote.
   * A replica gives up after 5 s, and only then gets the command again: a repetition within that time would restart the
   * failover.
   */
  async failover(replica: ClusterNode, how?: 'FORCE' | 'TAKEOVER'): Promise<void> {
    let tellAgainAt = 0;
    await waitUntil(async () => {
      if ((await roleOf(replica)) === 'master') return true;
      if (performance.now() < tellAgainAt) return false;
      await replica.server.ask('CLUSTER', 'FAILOVER', ...(how === undefined ? [] : [how]));
      tellAgainAt = performance.now() + FAILOVER_GIVEN_UP_MS;
      return false;
    });
  }

  async promoted(replica: ClusterNode): Promise<void> {
    await waitUntil(async () => (await roleOf(replica)) === 'master');
  }

  /** The primary's writes no longer reach its replica. */
  holdReplication(primary: ClusterNode, replica: ClusterNode): void {
    primary.gate.hold(({ address }) => address === replica.address);
  }

  /**
   * Cuts the network: nodes inside, and clients whose process is one of `clientPids`, talk only to each other, and so do all
   * others. Connections stay open and silent.
   */
  partition(inside: readonly ClusterNode[], clientPids: readonly number[] = []): void {
    const addressesInside = new Set(inside.map(({ address }) => address));
    const members = new Set(this.nodes.map(({ address }) => address));
    for (const member of this.nodes) {
      const isInside = addressesInside.has(member.address);
      const isSourceInside = (source: GateSource, port: number) =>
        members.has(source.address)
          ? addressesInside.has(source.address)
          : isOfProcess(source, port, clientPids);
      for (const gate of [member.gate, member.busGate]) {
        gate.hold((source) => isSourceInside(source, gate.port) !== isInside);
      }
    }
  }

  /** Cuts one node off from all others; clients reach it as they did. */
  cutOff(cut: ClusterNode): void {
    const others = new Set(this.nodes.filter((node) => node !== cut).map(({ address }) => address));
    for (const node of this.nodes) {
      for (const gate of [node.gate, node.busGate]) {
        gate.hold(({ address }) => (node === cut ? others.has(address) : address === cut.address));
      }
    }
  }

  /** Everything that was kept back arrives. */
  heal(): void {
    for (const { gate, busGate } of this.nodes) {
      gate.release();
      busGate.release();
    }
  }

  /** Resolves when all nodes run, all slots are served, and every replica follows its primary. */
  async settled(): Promise<void> {
    await waitUntil(() => this.#isSettled().catch(() => false));
  }

  async stop(): Promise<void> {
    await stopAll(this.nodes);
  }

  #nodeWithId(id: string): ClusterNode {
    const found = this.nodes.find((node) => node.id === id);
    if (found === undefined) throw new Error('no node of this cluster');
    return found;
  }

  async #byRole() {
    const running = this.nodes.filter(({ server }) => server.isRunning);
    return Promise.all(running.map(async (node) => ({ node, role: await roleOf(node) })));
  }

  async #agreeOn(slot: number, target: ClusterNode): Promise<boolean> {
    const running = this.nodes.filter(({ server }) => server.isRunning);
    const views = await Promise.all(running.map(({ server }) => server.ask('CLUSTER', 'SLOTS')));
    return views.every((view) => ownerIn(view, slot) === target.id);
  }

  async #isSettled(): Promise<boolean> {
    const primaries = new Set<ClusterNode>();
    for (const node of this.nodes) {
      const cluster = infoFields(await node.server.ask('CLUSTER', 'INFO'));
      if (cluster.get('cluster_state') !== 'ok') return false;
      if (cluster.get('cluster_slots_ok') !== `${SLOT_COUNT}`) return false;
      if (Number(cluster.get('cluster_known_nodes')) !== this.#nodes.length) return false;
      const replication = infoFields(await node.server.ask('INFO', 'replication'));
      if (replication.get('role') === 'master') primaries.add(node);
      else if (replication.get('master_link_status') !== 'up') return false;
      else continue;
      if (!replication.get('slave0')?.includes('state=online')) return false;
    }
    return primaries.size === PRIMARY_COUNT && (await this.#isOneView());
  }

  /** Gossip about slots and roles takes a while to reach every node. */
  async #isOneView(): Promise<boolean> {
    const views = await Promise.all(this.nodes.map(({ server }) => server.ask('CLUSTER', 'SLOTS')));
    const ranges = views.flatMap((view) => (Array.isArray(view) ? view.map(idsOfRange) : []));
    if (ranges.some((ids) => ids.length < NODE_COUNT / PRIMARY_COUNT)) return false;
    const texts = views.map((view) => (Array.isArray(view) ? view.map(describeRange).sort().join('\n') : ''));
    return new Set(texts).size === 1;
  }
}

export async function roleOf({ server }: Pick<ClusterNode, 'server'>): Promise<string> {
  return infoFields(await server.ask('INFO', 'replication')).get('role') ?? '';
}

/**
 * IDs in one entry of `CLUSTER SLOTS` (first slot, last slot, then host, port and ID of each node): primary and
 * replicas.
 */
function idsOfRange(range: RedisReply): readonly string[] {
  const nodes = Array.isArray(range) ? range.slice(2) : [];
  return nodes.map((node: RedisReply) => (Array.isArray(node) ? String(node[2]) : ''));
}

function describeRange(range: RedisReply): string {
  const [first, last] = Array.isArray(range) ? range : [];
  const [primaryId, ...replicaIds] = idsOfRange(range);
  return `${first}-${last} ${primaryId} ${replicaIds.sort().join(' ')}`;
}

function ownerIn(slots: RedisReply | undefined, slot: number): string | undefined {
  const ranges = Array.isArray(slots) ? slots : [];
  const found = ranges.find(
    (range) => Array.isArray(range) && Number(range[0]) <= slot && slot <= Number(range[1]),
  );
  return found === undefined ? undefined : idsOfRange(found)[0];
}
