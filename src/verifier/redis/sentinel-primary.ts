/**
 * Finds the primary that Sentinels name. It polls all Sentinels and uses the answer after the latest failover. While
 * none answers, the current primary stays in use: it stops accepting writes by itself when its replicas are gone.
 */

import type { Redis } from 'ioredis';
import { MAX_PORT } from '../../protocol/limits.ts';
import { createRedisClient } from './client.ts';
import { addressLabel, type RedisAddress, type SentinelEndpoint } from './endpoint.ts';
import { classifyFault, describeConnectionError, describeRefusal } from './faults.ts';
import { parseCount, parsePairs } from './info.ts';
import type { RedisLink } from './link.ts';
import { PeriodicTask } from './periodic-task.ts';
import { ONLY_TAG, openPrimaryLink, type Primaries, type PrimariesOptions } from './primaries.ts';

const MAX_LOOK_INTERVAL_MS = 1_000;
/** A Sentinel that hangs must not delay the answers of the others. */
const SENTINEL_TIMEOUT_MS = 500;

const ALL_SHARDS: readonly number[] = [0];
const NO_LOGIN = { username: undefined, revealPassword: () => undefined };

export function openSentinelPrimary(options: PrimariesOptions, endpoint: SentinelEndpoint): Primaries {
  return new SentinelPrimary(options, endpoint);
}

interface Sentinel {
  readonly label: string;
  readonly client: Redis;
  /** Last connection error. */
  problem: string | undefined;
}

class SentinelPrimary implements Primaries {
  readonly tags = [ONLY_TAG];
  readonly #options: PrimariesOptions;
  readonly #primaryName: string;
  readonly #sentinels: readonly Sentinel[];
  readonly #look: PeriodicTask;
  #view: SentinelView | undefined;
  #link: RedisLink | undefined;
  #problem: string;

  constructor(options: PrimariesOptions, endpoint: SentinelEndpoint) {
    this.#options = options;
    this.#primaryName = endpoint.primaryName;
    this.#problem = `asking the Sentinels for the primary ${endpoint.primaryName}`;
    this.#sentinels = endpoint.sentinels.map((address) => this.#openSentinel(address));
    this.#look = new PeriodicTask(Math.min(options.recheckIntervalMs, MAX_LOOK_INTERVAL_MS), () =>
      this.#lookOnce(),
    );
  }

  linkOf(): RedisLink | undefined {
    return this.#link;
  }

  shardsOf(): readonly number[] {
    return ALL_SHARDS;
  }

  links(): readonly RedisLink[] {
    return this.#link === undefined ? [] : [this.#link];
  }

  problem(): string | undefined {
    return this.#link === undefined ? this.#problem : undefined;
  }

  suspect(): void {
    this.#look.soon();
  }

  async close(): Promise<void> {
    await this.#look.stop();
    for (const { client } of this.#sentinels) client.disconnect();
    await this.#link?.close();
  }

  #openSentinel(address: RedisAddress): Sentinel {
    const client = createRedisClient({
      address,
      tls: this.#options.endpoint.tls,
      login: this.#options.sentinelLogin ?? NO_LOGIN,
      databaseNumber: 0,
      commandTimeoutMs: Math.min(SENTINEL_TIMEOUT_MS, this.#options.connectTimeoutMs),
      connectTimeoutMs: this.#options.connectTimeoutMs,
      certificateAuthorities: this.#options.certificateAuthorities,
    });
    const sentinel: Sentinel = { label: addressLabel(address), client, problem: undefined };
    client.on('ready', () => {
      sentinel.problem = undefined;
      this.#look.soon();
    });
    client.on('error', (error: unknown) => {
      sentinel.problem = describeConnectionError(error, sentinel.label);
    });
    // The failure also arrives as an `error` event.
    client.connect().catch(() => undefined);
    return sentinel;
  }

  async #lookOnce(): Promise<void> {
    const views = await Promise.all(this.#sentinels.map((sentinel) => this.#ask(sentinel)));
    if (this.#look.isStopped) return;
    const latest = latestView(views);
    if (latest === undefined) {
      const cause = this.#sentinels.find(({ problem }) => problem !== undefined)?.problem;
      this.#problem = `no Sentinel names the primary ${this.#primaryName}${cause === undefined ? '' : `: ${cause}`}`;
    } else {
      this.#take(latest);
    }
  }

  async #ask(sentinel: Sentinel): Promise<SentinelView | undefined> {
    const { client, label } = sentinel;
    if (client.status !== 'ready') return undefined;
    try {
      const [primary, replicas] = await Promise.all([
        client.call('SENTINEL', 'MASTER', this.#primaryName),
        client.call('SENTINEL', 'REPLICAS', this.#primaryName),
      ]);
      sentinel.problem = undefined;
      return parseSentinelView(primary, replicas);
    } catch (error) {
      sentinel.problem = this.#describe(error, label);
      // Its name may lead to another machine by now.
      if (classifyFault(error).kind === 'no_answer') client.disconnect(true);
      return undefined;
    }
  }

  #describe(error: unknown, label: string): string {
    const fault = classifyFault(error);
    if (fault.kind === 'no_answer') return `the Sentinel at ${label} does not answer in time`;
    if (fault.code !== 'ERR') return describeRefusal(fault.code, label);
    return `the server at ${label} is no Sentinel, or knows no primary of that name`;
  }

  #take(view: SentinelView): void {
    const before = this.#view;
    // The Sentinels that know the latest failover may be unreachable. A serving primary is better than an outdated
    // view.
    if (before !== undefined && view.configEpoch < before.configEpoch && this.#link?.isServing) return;
    this.#view = view;
    const isSame = before !== undefined && addressLabel(before.primary) === addressLabel(view.primary);
    if (!isSame) {
      void this.#link?.close();
      this.#link = openPrimaryLink(this.#options, view.primary, () => this.#view?.replicas);
    } else if (view.replicas > before.replicas) {
      this.#link?.requalify();
    }
  }
}

/** Parses what Sentinels report about a primary and its replicas. */

interface SentinelView {
  readonly primary: RedisAddress;
  /** Rises with every failover; a partitioned Sentinel still reports an old one. */
  readonly configEpoch: number;
  /**
   * Number of replicas, reachable or not, if any of them may be promoted; 0 if none may. One that may not be promoted
   * counts too, because it could stay with a replaced primary.
   */
  readonly replicas: number;
}

/** Parses the replies to `SENTINEL MASTER` and `SENTINEL REPLICAS`; undefined for any other replies. */
export function parseSentinelView(primary: unknown, replicas: unknown): SentinelView | undefined {
  const fields = parsePairs(primary);
  const host = fields.get('ip');
  const port = parseCount(fields.get('port'));
  const configEpoch = parseCount(fields.get('config-epoch'));
  if (host === undefined || host === '' || configEpoch === undefined) return undefined;
  if (port === undefined || port < 1 || port > MAX_PORT || !Array.isArray(replicas)) return undefined;
  return {
    primary: { host, port },
    configEpoch,
    replicas: replicas.some(isPromotable) ? replicas.length : 0,
  };
}

/** Priority 0 means never. A replica whose priority is still unknown may be promoted. */
function isPromotable(replica: unknown): boolean {
  return parsePairs(replica).get('slave-priority') !== '0';
}

/** The view after the latest failover; undefined when there is none. */
export function latestView(views: readonly (SentinelView | undefined)[]): SentinelView | undefined {
  let latest: SentinelView | undefined;
  for (const view of views) {
    if (view === undefined) continue;
    if (latest === undefined || view.configEpoch > latest.configEpoch) latest = view;
    // Uses the largest number of replicas, because a Sentinel that has just started knows none.
    else if (view.configEpoch === latest.configEpoch) latest = withMoreReplicas(latest, view);
  }
  return latest;
}

function withMoreReplicas(view: SentinelView, other: SentinelView): SentinelView {
  return other.replicas > view.replicas ? { ...view, replicas: other.replicas } : view;
}
