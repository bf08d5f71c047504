/**
 * Two real Redis, of which one name leads to the primary, and ways to replace it. Each verifier has a name of its own, so
 * that they may see a change at different times. Replication passes a gate, which loses writes on purpose.
 */
import { ONLY_TAG } from '../../../src/verifier/redis/primaries.ts';
import { replayKeys } from '../../../src/verifier/redis/replay-keys.ts';
import { RedisGate } from '../../support/harness/redis-gate.ts';
import { infoFields } from '../../support/harness/redis-reply.ts';
import { TestRedisServer } from '../../support/harness/redis-server.ts';
import { waitUntil } from '../../support/wait.ts';
import type { ReplayCampaign } from './campaign.ts';
import type { ReplayVerifier } from './verifier-process.ts';

const MAX_LAG_SECONDS = 2;
const EPOCH_KEY = replayKeys(ONLY_TAG).epoch;

interface Node {
  readonly server: TestRedisServer;
  /** The other node replicates through it. */
  readonly gate: RedisGate;
}

/** What a verifier's URL names. */
export class RedisName {
  readonly #gate: RedisGate;
  readonly #target: { node: Node };

  private constructor(gate: RedisGate, target: { node: Node }) {
    this.#gate = gate;
    this.#target = target;
  }

  static async start(node: Node): Promise<RedisName> {
    const target = { node };
    return new RedisName(await RedisGate.start(() => target.node.server.port), target);
  }

  get url(): string {
    return `redis://127.0.0.1:${this.#gate.port}`;
  }

  /** New connections lead there; those that are open stay. */
  moveTo(node: Node): void {
    this.#target.node = node;
  }

  close(): Promise<void> {
    return this.#gate.close();
  }
}

export class NamedPrimary {
  primary: Node;
  replica: Node;
  readonly north: RedisName;
  readonly south: RedisName;

  private constructor(primary: Node, replica: Node, north: RedisName, south: RedisName) {
    this.primary = primary;
    this.replica = replica;
    this.north = north;
    this.south = south;
  }

  static async start(): Promise<NamedPrimary> {
    const [first, second] = await Promise.all([startNode(), startNode()]);
    const names = await Promise.all([RedisName.start(first), RedisName.start(first)]);
    const redis = new NamedPrimary(first, second, ...names);
    await redis.follow();
    return redis;
  }

  /** The replica follows the primary. */
  async follow(): Promise<void> {
    const { primary, replica } = this;
    await replica.server.ask('REPLICAOF', '127.0.0.1', `${primary.gate.port}`);
    await waitUntil(async () => {
      const fields = infoFields(await replica.server.ask('INFO', 'replication'));
      return fields.get('role') === 'slave' && fields.get('master_link_status') === 'up';
    });
  }

  /** The replica becomes a primary, beside the old one, of which it has lost the latest accepts. */
  async promoteWithoutWrites(campaign: ReplayCampaign): Promise<void> {
    this.primary.gate.hold(() => true);
    await campaign.someAccepts();
    await this.promote();
  }

  async promote(): Promise<void> {
    const { primary, replica } = this;
    await replica.server.ask('REPLICAOF', 'NO', 'ONE');
    this.primary = replica;
    this.replica = primary;
    primary.gate.release();
  }

  moveNames(): void {
    for (const name of [this.north, this.south]) name.moveTo(this.primary);
  }

  async stop(): Promise<void> {
    await Promise.all([this.north.close(), this.south.close()]);
    for (const { server, gate } of [this.primary, this.replica]) {
      await server.stop();
      await gate.close();
    }
  }
}

async function startNode(): Promise<Node> {
  const server = await TestRedisServer.start(
    ...['--maxmemory-policy', 'noeviction', '--repl-diskless-sync-delay', '0'],
    ...['--min-replicas-max-lag', `${MAX_LAG_SECONDS}`],
  );
  return { server, gate: await RedisGate.start(() => server.port) };
}

interface NameStage {
  readonly redis: NamedPrimary;
  /** Under load. */
  readonly campaign: ReplayCampaign;
  /** North and south. */
  readonly verifiers: readonly [ReplayVerifier, ReplayVerifier];
  /** Called when both names lead to the new primary. */
  readonly moved: () => void;
}

export interface NameFailover {
  readonly name: string;
  readonly strike: (stage: NameStage) => Promise<void>;
}

/** Each ends with a new primary, to which both names lead, and the old one as its replica. */
export const NAME_FAILOVERS: readonly NameFailover[] = [
  { name: 'the old primary is demoted', strike: demote },
  { name: 'the old primary is killed', strike: kill },
  { name: 'the old primary is not told', strike: leaveRunning },
  { name: 'the old primary stands still', strike: standStill },
  { name: 'the old primary stands still with a verifier', strike: standStillTogether },
  { name: 'the old primary is cut off with a verifier', strike: cutOff },
];

async function demote({ redis, campaign, moved }: NameStage): Promise<void> {
  await redis.promoteWithoutWrites(campaign);
  await redis.follow();
  await untilRefusing(campaign);
  redis.moveNames();
  moved();
}

async function kill({ redis, campaign, moved }: NameStage): Promise<void> {
  await redis.promoteWithoutWrites(campaign);
  const old = redis.replica.server;
  await old.kill();
  redis.moveNames();
  moved();
  await old.startAgain();
  await redis.follow();
}

async function leaveRunning({ redis, campaign, moved }: NameStage): Promise<void> {
  await redis.promoteWithoutWrites(campaign);
  redis.moveNames();
  moved();
  await untilRefusing(campaign);
  await campaign.untilServing();
  await campaign.presentAgain();
  await redis.follow();
}

async function standStill({ redis, campaign, moved }: NameStage): Promise<void> {
  redis.primary.gate.hold(() => true);
  await campaign.someAccepts();
  redis.primary.server.freeze();
  await redis.promote();
  redis.moveNames();
  moved();
  await campaign.untilServing().finally(() => redis.replica.server.thaw());
  await campaign.presentAgain();
  await redis.follow();
}

async function untilRefusing(campaign: ReplayCampaign): Promise<void> {
  await Promise.all(campaign.targets.map((target) => campaign.untilRefusing(target)));
}

/** Longer than the time between two looks at the old primary, and until the other verifier accepts. */
async function standStillTogether({ redis, campaign, verifiers, moved }: NameStage): Promise<void> {
  const [north, south] = verifiers;
  redis.primary.gate.hold(() => true);
  await campaign.someAccepts();
  redis.primary.server.freeze();
  process.kill(north.pid, 'SIGSTOP');
  try {
    await redis.promote();
    redis.moveNames();
    moved();
    await campaign.untilServing([south.target]);
  } finally {
    redis.replica.server.thaw();
    process.kill(north.pid, 'SIGCONT');
  }
  await campaign.presentAgain();
  await campaign.untilServing();
  await redis.follow();
}

/** North still finds the old primary, which must have noticed by itself that its replica is gone. */
async function cutOff({ redis, campaign, verifiers, moved }: NameStage): Promise<void> {
  const [north, south] = verifiers;
  const old = redis.primary.server;
  await old.ask('CONFIG', 'SET', 'min-replicas-to-write', '1');
  // Verifiers have read the setting when they note what replicas acknowledged.
  await waitUntil(async () => /,? [1-9][0-9]* [0-9]+ [0-9]+$/.test(String(await old.ask('GET', EPOCH_KEY))));
  redis.primary.gate.hold(() => true);
  await redis.replica.server.ask('REPLICAOF', 'NO', 'ONE');
  redis.south.moveTo(redis.replica);
  await campaign.untilServing([south.target]);
  await campaign.untilRefusing(north.target);
  await campaign.presentAgain();
  await redis.promote();
  await old.ask('CONFIG', 'SET', 'min-replicas-to-write', '0');
  redis.moveNames();
  moved();
  await redis.follow();
}
