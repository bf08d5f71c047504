/**
 * The server that one address leads to. Its name, or a proxy behind it, may lead to another server after a failover, and
 * an open connection does not show that. So a new connection is opened at intervals, and the servers are compared.
 */
import { createRedisClient } from './client.ts';
import type { SingleEndpoint } from './endpoint.ts';
import { parseInfo } from './info.ts';
import type { RedisLink } from './link.ts';
import { PeriodicTask } from './periodic-task.ts';
import {
  dataConnection,
  ONLY_TAG,
  openPrimaryLink,
  type Primaries,
  type PrimariesOptions,
} from './primaries.ts';

/** A replaced server must be left within F, which is 12 s or more: `failover-settings.ts`. */
const MAX_LOOK_INTERVAL_MS = 1_000;
/** The field by which the scripts also identify a primary. */
const REPLICATION_ID = 'master_replid';
const ALL_SHARDS: readonly number[] = [0];

export function openSinglePrimary(options: PrimariesOptions, endpoint: SingleEndpoint): Primaries {
  return new SinglePrimary(options, endpoint);
}

class SinglePrimary implements Primaries {
  readonly tags = [ONLY_TAG];
  readonly #options: PrimariesOptions;
  readonly #endpoint: SingleEndpoint;
  readonly #link: RedisLink;
  readonly #look: PeriodicTask;

  constructor(options: PrimariesOptions, endpoint: SingleEndpoint) {
    this.#options = options;
    this.#endpoint = endpoint;
    this.#link = openPrimaryLink(options, endpoint.address, () => undefined);
    this.#look = new PeriodicTask(Math.min(options.recheckIntervalMs, MAX_LOOK_INTERVAL_MS), () =>
      this.#lookOnce(),
    );
  }

  linkOf(): RedisLink {
    return this.#link;
  }

  shardsOf(): readonly number[] {
    return ALL_SHARDS;
  }

  links(): readonly RedisLink[] {
    return [this.#link];
  }

  problem(): undefined {
    return undefined;
  }

  suspect(): void {
    this.#look.soon();
  }

  async close(): Promise<void> {
    await Promise.all([this.#look.stop(), this.#link.close()]);
  }

  /** A link that is not serving connects again by itself. */
  async #lookOnce(): Promise<void> {
    if (!this.#link.isServing) return;
    const [current, found] = await Promise.all([
      this.#link
        .call('INFO')
        .then(parseInfo)
        .catch(() => undefined),
      this.#infoOfNewConnection(),
    ]);
    const replicationId = current?.get(REPLICATION_ID);
    const foundId = found?.get(REPLICATION_ID);
    if (replicationId === undefined || foundId === undefined || replicationId === foundId) return;
    // A name that a primary shares with its replicas may lead to any of them. Only another primary is a successor.
    if (found?.get('role') === 'master') this.#link.reconnect();
  }

  /** Undefined while no server is reached: the link is used until another one is found. */
  async #infoOfNewConnection(): Promise<ReadonlyMap<string, string> | undefined> {
    const client = createRedisClient({ ...dataConnection(this.#options), address: this.#endpoint.address });
    // Disconnects, because otherwise ioredis would reconnect.
    client.on('error', () => client.disconnect());
    try {
      await client.connect();
      return parseInfo(await client.call('INFO'));
    } catch {
      return undefined;
    } finally {
      client.disconnect();
    }
  }
}
