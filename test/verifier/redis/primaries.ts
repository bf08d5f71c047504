/** What the tests of primaries share: servers that a test gives words to, and primaries over them, closed together. */
import type { ClusterEndpoint, SentinelEndpoint } from '../../../src/verifier/redis/endpoint.ts';
import type { RedisLink } from '../../../src/verifier/redis/link.ts';
import { openPrimaries } from '../../../src/verifier/redis/open-primaries.ts';
import type { Primaries, PrimariesOptions } from '../../../src/verifier/redis/primaries.ts';
import { infoText, RedisSpeaker, type Spoken } from '../../support/fakes/redis-speaker.ts';

type Endpoint =
  | Pick<SentinelEndpoint, 'kind' | 'sentinels' | 'primaryName'>
  | Pick<ClusterEndpoint, 'kind' | 'seeds'>;

/** Like a server that may be used, for all that is asked of a primary. */
export function primaryOf(kind: 'sentinel' | 'cluster', more: Spoken = () => null): Spoken {
  return (words) => {
    if (words[0] === 'INFO') {
      return infoText({
        redis_version: '7.2.0',
        redis_mode: kind === 'cluster' ? 'cluster' : 'standalone',
        loading: 0,
        role: 'master',
        maxmemory_policy: 'noeviction',
        cluster_enabled: kind === 'cluster' ? 1 : 0,
      });
    }
    if (words[0] === 'CONFIG') {
      return ['min-replicas-to-write', '1', 'min-replicas-max-lag', '13', 'cluster-node-timeout', '14000'];
    }
    return more(words);
  };
}

export class TestPrimaries {
  readonly #opened: Primaries[] = [];
  readonly #speakers: RedisSpeaker[] = [];
  /** Labels of links that were prepared, in order. */
  prepared: string[] = [];

  async speaker(spoken: Spoken, port?: number): Promise<RedisSpeaker> {
    const speaker = await RedisSpeaker.start(spoken, port);
    this.#speakers.push(speaker);
    return speaker;
  }

  open(endpoint: Endpoint, options: Partial<PrimariesOptions> = {}): Primaries {
    const login = { username: undefined, revealPassword: () => undefined };
    const common = { tls: false, login };
    const primaries = openPrimaries({
      endpoint:
        endpoint.kind === 'cluster'
          ? { ...common, ...endpoint }
          : { ...common, databaseNumber: 0, ...endpoint },
      commandTimeoutMs: 1_000,
      connectTimeoutMs: 1_000,
      recheckIntervalMs: 3_600_000,
      certificateAuthorities: undefined,
      declaredFailoverSettings: {},
      sentinelLogin: undefined,
      prepare: async (link: RedisLink) => {
        this.prepared.push(link.label);
        return undefined;
      },
      ...options,
    });
    this.#opened.push(primaries);
    return primaries;
  }

  async closeAll(): Promise<void> {
    for (const primaries of this.#opened.splice(0)) await primaries.close();
    for (const speaker of this.#speakers.splice(0)) await speaker.stop();
    this.prepared = [];
  }
}
