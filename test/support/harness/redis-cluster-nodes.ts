/** The nodes of a test's Redis Cluster: each has its gates; they are joined and stopped together. */

import { waitUntil } from '../wait.ts';
import { freePort } from './free-port.ts';
import { RedisGate } from './redis-gate.ts';
import { TestRedisServer } from './redis-server.ts';

export const PRIMARY_COUNT = 3;
export const NODE_COUNT = 2 * PRIMARY_COUNT;
export const SLOT_COUNT = 16_384;

export interface ClusterOptions {
  /** Default 1: each primary has one replica. */
  readonly minReplicasToWrite?: number;
  /** Default 2. */
  readonly minReplicasMaxLagSeconds?: number;
  /** `cluster-node-timeout`. Default 2,000. */
  readonly nodeTimeoutMs?: number;
  /** Further arguments of all servers. */
  readonly settings?: readonly string[];
  /** Added to the environment of all servers. */
  readonly env?: Readonly<Record<string, string>>;
}

export interface ClusterNode {
  readonly id: string;
  readonly server: TestRedisServer;
  /** Where clients and replicas connect. */
  readonly gate: RedisGate;
  readonly busGate: RedisGate;
  /** Address from which it connects to the others. */
  readonly address: string;
}

export async function startNode(at: number, options: ClusterOptions): Promise<ClusterNode> {
  const ports = { client: 0, bus: await freePort() };
  const gate = await RedisGate.start(() => ports.client);
  const busGate = await RedisGate.start(() => ports.bus);
  const address = `127.0.0.${at + 31}`;
  try {
    const server = await TestRedisServer.startWith({
      settings: nodeSettings(address, gate.port, busGate.port, ports.bus, options),
      ...(options.env === undefined ? {} : { env: options.env }),
    });
    ports.client = server.port;
    return { id: String(await server.ask('CLUSTER', 'MYID')), server, gate, busGate, address };
  } catch (error) {
    await gate.close();
    await busGate.close();
    throw error;
  }
}

function nodeSettings(
  address: string,
  gatePort: number,
  busGatePort: number,
  busPort: number,
  options: ClusterOptions,
): readonly string[] {
  const { minReplicasToWrite = 1, minReplicasMaxLagSeconds = 2, nodeTimeoutMs = 2_000 } = options;
  return [
    ...['--cluster-enabled', 'yes', '--cluster-port', `${busPort}`],
    ...['--cluster-node-timeout', `${nodeTimeoutMs}`, '--cluster-replica-validity-factor', '0'],
    // The test decides which replica follows which primary.
    ...['--cluster-allow-replica-migration', 'no'],
    ...['--cluster-announce-ip', '127.0.0.1', '--cluster-announce-port', `${gatePort}`],
    ...['--cluster-announce-bus-port', `${busGatePort}`, '--bind-source-addr', address],
    ...['--min-replicas-to-write', `${minReplicasToWrite}`],
    ...['--min-replicas-max-lag', `${minReplicasMaxLagSeconds}`],
    ...['--maxmemory-policy', 'noeviction', '--repl-diskless-sync-delay', '0'],
    ...(options.settings ?? []),
  ];
}

/** The first three get a third of the slots each, the others follow them. */
export async function introduce(nodes: readonly ClusterNode[]): Promise<void> {
  for (const [at, { server }] of nodes.entries()) {
    await server.ask('CLUSTER', 'SET-CONFIG-EPOCH', `${at + 1}`);
    if (at >= PRIMARY_COUNT) continue;
    const bounds = [at, at + 1].map((part) => Math.floor((part * SLOT_COUNT) / PRIMARY_COUNT));
    await server.ask('CLUSTER', 'ADDSLOTSRANGE', `${bounds[0]}`, `${(bounds[1] ?? 0) - 1}`);
  }
  const [first, ...others] = nodes;
  for (const { gate, busGate } of others) {
    await first?.server.ask('CLUSTER', 'MEET', '127.0.0.1', `${gate.port}`, `${busGate.port}`);
  }
  for (const [at, { server }] of nodes.slice(PRIMARY_COUNT).entries()) {
    await follow({ server }, nodes[at]?.id ?? '');
  }
}

/** Resolves when the node has heard of the primary and becomes its replica. */
export async function follow({ server }: Pick<ClusterNode, 'server'>, primaryId: string): Promise<void> {
  const replicate = async () =>
    (await server.ask('CLUSTER', 'REPLICATE', primaryId).catch(() => '')) === 'OK';
  await waitUntil(replicate);
}

export async function stopAll(nodes: readonly ClusterNode[]): Promise<void> {
  await Promise.all(
    nodes.map(async ({ server, gate, busGate }) => {
      await server.stop();
      await gate.close();
      await busGate.close();
    }),
  );
}
