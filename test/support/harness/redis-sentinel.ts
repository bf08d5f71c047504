/**
 * Real Redis under real Sentinels on free loopback ports, for tests: one primary, replicas, three Sentinels, with a gate in
 * front of each, so that tests can partition the network. They keep nothing on disk: after a restart they are empty.
 */

import { waitUntil } from '../wait.ts';
import { type GateSource, isOfProcess, RedisGate } from './redis-gate.ts';
import { infoFields, pairFields } from './redis-reply.ts';
import { type TestRedisOptions, TestRedisServer } from './redis-server.ts';

const PRIMARY_NAME = 'replay';
const SENTINEL_COUNT = 3;
const USUAL_PRIORITY = 100;
const QUORUM = 2;

export interface SentinelOptions {
  /** `replica-priority` of each replica; with 0 it is never promoted. Default two of 100. */
  readonly replicaPriorities?: readonly number[];
  /** Default 2. */
  readonly minReplicasToWrite?: number;
  /** Default 2. */
  readonly minReplicasMaxLagSeconds?: number;
  /** How long a primary is silent before Sentinels call it down. Default 500. */
  readonly downAfterMs?: number;
  /** Default 3,000; Sentinels do not replace a failed primary a second time within twice this long. */
  readonly failoverTimeoutMs?: number;
  /** Further arguments of the servers that hold data. */
  readonly settings?: readonly string[];
  /** Added to their environment. */
  readonly env?: Readonly<Record<string, string>>;
}

/** A server or a Sentinel with its gate, through which all clients except the test itself connect. */
export interface GuardedServer {
  readonly server: TestRedisServer;
  readonly gate: RedisGate;
  /** Address from which it connects to the others. */
  readonly address: string;
}

export class TestRedisSentinel {
  readonly primaryName = PRIMARY_NAME;
  readonly nodes: readonly GuardedServer[];
  readonly sentinels: readonly GuardedServer[];

  private constructor(nodes: readonly GuardedServer[], sentinels: readonly GuardedServer[]) {
    this.nodes = nodes;
    this.sentinels = sentinels;
  }

  /** Takes some seconds: all know each other, and both replicas follow, when it resolves. */
  static async start(options: SentinelOptions = {}): Promise<TestRedisSentinel> {
    const started: GuardedServer[] = [];
    const priorities = [USUAL_PRIORITY, ...(options.replicaPriorities ?? [USUAL_PRIORITY, USUAL_PRIORITY])];
    const nodeCount = priorities.length;
    try {
      for (const [at, priority] of priorities.entries()) {
        started.push(await startGuarded(at, (port) => nodeOptions(at, port, priority, started[0], options)));
      }
      for (let at = nodeCount; at < nodeCount + SENTINEL_COUNT; at += 1) {
        started.push(await startGuarded(at, (port) => sentinelOptions(at, port, started[0], options)));
      }
      const fake = new TestRedisSentinel(started.slice(0, nodeCount), started.slice(nodeCount));
      await Promise.all(fake.sentinels.map(hasten));
      await fake.settled();
      return fake;
    } catch (error) {
      await stopAll(started);
      throw error;
    }
  }

  /** Ports that clients give for the Sentinels; `indexes` default to all. */
  sentinelPorts(indexes: readonly number[] = [0, 1, 2]): readonly number[] {
    return indexes.flatMap((index) => this.sentinels[index]?.gate.port ?? []);
  }

  /** `redis-sentinel://HOST:PORT,…/NAME` */
  urlOf(indexes?: readonly number[]): string {
    const hosts = this.sentinelPorts(indexes).map((port) => `127.0.0.1:${port}`);
    return `redis-sentinel://${hosts.join(',')}/${PRIMARY_NAME}`;
  }

  get url(): string {
    return this.urlOf();
  }

  /** The node that the Sentinel (default: the first) calls the primary. */
  async primary(sentinelIndex = 0): Promise<GuardedServer> {
    const sentinel = this.sentinels[sentinelIndex];
    const answer = await sentinel?.server.ask('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', PRIMARY_NAME);
    const port = Array.isArray(answer) ? Number(answer[1]) : 0;
    const found = this.nodes.find((node) => node.gate.port === port);
    if (found === undefined) throw new Error('the Sentinel names no primary');
    return found;
  }

  async replicas(): Promise<readonly GuardedServer[]> {
    const primary = await this.primary();
    return this.nodes.filter((node) => node !== primary);
  }

  /**
   * Promotes a replica on command while the primary is healthy, and resolves when another server is the primary. A Sentinel
   * abandons a failover when the replica is not promoted within its time-out and does not retry, so this repeats the command.
   */
  async failover(): Promise<GuardedServer> {
    const before = await this.primary();
    await waitUntil(async () => {
      await this.#commandFailover(before);
      return (await this.#successorOf(before)) !== undefined;
    });
    return this.promoted(before);
  }

  /** Resolves when a majority of the Sentinels name another primary than this one. */
  async promoted(before: GuardedServer): Promise<GuardedServer> {
    let after: GuardedServer | undefined;
    await waitUntil(async () => {
      after = await this.#successorOf(before);
      return after !== undefined;
    });
    if (after === undefined) throw new Error('nothing was promoted');
    return after;
  }

  /** Resolves when Sentinels are agreed, and every node runs, one as the primary and the others as replicas that follow. */
  async settled(): Promise<void> {
    await waitUntil(() => this.#isSettled().catch(() => false));
  }

  /** Only this replica may be promoted next. Resolves when the Sentinels know. */
  async candidate(replica: GuardedServer): Promise<void> {
    for (const node of this.nodes) {
      await node.server.ask(
        'CONFIG',
        'SET',
        'replica-priority',
        node === replica ? `${USUAL_PRIORITY}` : '0',
      );
    }
    await waitUntil(() =>
      this.#know((port, priority) => priority === (port === replica.gate.port ? USUAL_PRIORITY : 0)),
    );
  }

  /** Every replica may be promoted again. */
  async candidates(): Promise<void> {
    for (const node of this.nodes) {
      if (node.server.isRunning)
        await node.server.ask('CONFIG', 'SET', 'replica-priority', `${USUAL_PRIORITY}`);
    }
  }

  /** The primary's writes no longer reach the replica, which still believes that it is connected. */
  holdReplication(primary: GuardedServer, replica: GuardedServer): void {
    primary.gate.hold(({ address }) => address === replica.address);
  }

  /**
   * Cuts the network: those inside, and clients whose process is one of `clientPids`, talk only to each other, and so do all
   * others. Connections stay open and silent.
   */
  partition(inside: readonly GuardedServer[], clientPids: readonly number[] = []): void {
    const addressesInside = new Set(inside.map(({ address }) => address));
    const members = new Set([...this.nodes, ...this.sentinels].map(({ address }) => address));
    for (const member of [...this.nodes, ...this.sentinels]) {
      const isInside = addressesInside.has(member.address);
      const isSourceInside = (source: GateSource) =>
        members.has(source.address)
          ? addressesInside.has(source.address)
          : isOfProcess(source, member.gate.port, clientPids);
      member.gate.hold((source) => isSourceInside(source) !== isInside);
    }
  }

  /** Everything that was kept back arrives. */
  heal(): void {
    for (const { gate } of [...this.nodes, ...this.sentinels]) gate.release();
  }

  async stop(): Promise<void> {
    await stopAll([...this.sentinels, ...this.nodes]);
  }

  /** Undefined until a majority names the same other one, and that is a primary. */
  async #successorOf(before: GuardedServer): Promise<GuardedServer | undefined> {
    const named = await Promise.all(this.sentinels.map((_, at) => this.primary(at).catch(() => before)));
    const after = named.find(
      (node) => node !== before && named.filter((other) => other === node).length >= QUORUM,
    );
    return after !== undefined && (await roleOf(after)) === 'master' ? after : undefined;
  }

  /**
   * Begins nothing while a failover is under way, after one, or while no replica is good. One that is under way is looked for
   * first: if it ends between the looks, the second sees another primary.
   */
  async #commandFailover(before: GuardedServer): Promise<void> {
    const [first] = this.sentinels;
    if (first === undefined) return;
    const fields = pairFields(await first.server.ask('SENTINEL', 'MASTER', PRIMARY_NAME));
    const isUnderWay = fields.get('flags')?.includes('failover_in_progress') ?? true;
    if (isUnderWay || (await this.primary()) !== before) return;
    await first.server.ask('SENTINEL', 'FAILOVER', PRIMARY_NAME).catch(() => undefined);
  }

  /** The number of promotions, as the first Sentinel knows it. */
  async promotions(): Promise<number> {
    const answer = await this.sentinels[0]?.server.ask('SENTINEL', 'MASTER', PRIMARY_NAME);
    return Number(pairFields(answer ?? null).get('config-epoch'));
  }

  async #isSettled(): Promise<boolean> {
    const named = await Promise.all(this.sentinels.map((_, at) => this.primary(at)));
    const [primary] = named;
    if (primary === undefined || named.some((other) => other !== primary)) return false;
    const roles = await Promise.all(this.nodes.map(roleOf));
    if (roles.filter((role) => role === 'master').length !== 1) return false;
    const replication = infoFields(await primary.server.ask('INFO', 'replication'));
    if (replication.get('role') !== 'master') return false;
    const replicaCount = this.nodes.length - 1;
    const online = [...replication.values()].filter((value) => value.includes('state=online'));
    if (online.length !== replicaCount) return false;
    const isWritable = Number(replication.get('min_slaves_good_slaves') ?? replicaCount) >= replicaCount;
    return isWritable && (await this.#isComplete());
  }

  /** Every Sentinel knows the two others and all replicas, and calls none of them down. */
  async #isComplete(): Promise<boolean> {
    const known = await Promise.all(
      this.sentinels.map(({ server }) => server.ask('SENTINEL', 'MASTER', PRIMARY_NAME)),
    );
    const isKnown = known.map(pairFields).every((fields) => {
      const others = Number(fields.get('num-other-sentinels'));
      return others === SENTINEL_COUNT - 1 && fields.get('flags') === 'master';
    });
    return isKnown && (await this.#know((_port, _priority, flags) => flags === 'slave'));
  }

  /** Whether what every Sentinel knows of all replicas is so. */
  async #know(isSo: (port: number, priority: number, flags: string) => boolean): Promise<boolean> {
    const answers = await Promise.all(
      this.sentinels.map(({ server }) => server.ask('SENTINEL', 'REPLICAS', PRIMARY_NAME)),
    );
    return answers.every((answer) => {
      const replicas = Array.isArray(answer) ? answer.map(pairFields) : [];
      return (
        replicas.length >= this.nodes.length - 1 &&
        replicas.every((fields) =>
          isSo(Number(fields.get('port')), Number(fields.get('slave-priority')), fields.get('flags') ?? ''),
        )
      );
    });
  }
}

async function roleOf({ server }: GuardedServer): Promise<string> {
  return infoFields(await server.ask('INFO', 'replication')).get('role') ?? '';
}

/** The gate is there first: what it guards announces the gate's port as its own. */
async function startGuarded(
  at: number,
  optionsFor: (gatePort: number) => TestRedisOptions,
): Promise<GuardedServer> {
  let port = 0;
  const gate = await RedisGate.start(() => port);
  try {
    const server = await TestRedisServer.startWith(optionsFor(gate.port));
    port = server.port;
    return { server, gate, address: addressOf(at) };
  } catch (error) {
    await gate.close();
    throw error;
  }
}

/** The whole of 127.0.0.0/8 is this machine. */
function addressOf(at: number): string {
  return `127.0.0.${at + 11}`;
}

function nodeOptions(
  at: number,
  gatePort: number,
  priority: number,
  primary: GuardedServer | undefined,
  options: SentinelOptions,
): TestRedisOptions {
  const { minReplicasToWrite = 2, minReplicasMaxLagSeconds = 2, settings = [], env } = options;
  return {
    settings: [
      ...['--bind-source-addr', addressOf(at), '--maxmemory-policy', 'noeviction'],
      ...['--replica-announce-ip', '127.0.0.1', '--replica-announce-port', `${gatePort}`],
      ...['--min-replicas-to-write', `${minReplicasToWrite}`],
      ...['--min-replicas-max-lag', `${minReplicasMaxLagSeconds}`],
      ...['--repl-diskless-sync-delay', '0', '--replica-priority', `${priority}`],
      ...settings,
      ...(primary === undefined ? [] : ['--replicaof', `127.0.0.1 ${primary.gate.port}`]),
    ],
    ...(env === undefined ? {} : { env }),
  };
}

function sentinelOptions(
  at: number,
  gatePort: number,
  primary: GuardedServer | undefined,
  { downAfterMs = 500, failoverTimeoutMs = 3_000 }: SentinelOptions,
): TestRedisOptions {
  return {
    settings: ['--bind-source-addr', addressOf(at)],
    sentinel: [
      'sentinel announce-ip 127.0.0.1',
      `sentinel announce-port ${gatePort}`,
      `sentinel monitor ${PRIMARY_NAME} 127.0.0.1 ${primary?.gate.port} ${QUORUM}`,
      `sentinel down-after-milliseconds ${PRIMARY_NAME} ${downAfterMs}`,
      `sentinel failover-timeout ${PRIMARY_NAME} ${failoverTimeoutMs}`,
      `sentinel parallel-syncs ${PRIMARY_NAME} 2`,
    ],
  };
}

/** Sentinels look and talk every few seconds; here several times a second, so that a failover takes one or two. */
async function hasten({ server }: GuardedServer): Promise<void> {
  await server.ask(
    ...['SENTINEL', 'DEBUG', 'INFO-PERIOD', '200', 'PUBLISH-PERIOD', '200'],
    ...['PING-PERIOD', '200', 'ASK-PERIOD', '200'],
  );
}

async function stopAll(members: readonly GuardedServer[]): Promise<void> {
  await Promise.all(
    members.map(async ({ server, gate }) => {
      await server.stop();
      await gate.close();
    }),
  );
}
