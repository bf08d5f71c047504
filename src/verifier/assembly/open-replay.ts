/** Opens the verifier's replay store, and reports its fences to the log and the metrics. */
import type { Logger } from '../../process/telemetry/log.ts';
import type { RedisReplayStoreOptions } from '../replay/redis.ts';
import { REPLAY_FENCE_REASONS, type ReplayObserver, type ReplayStore } from '../replay/store.ts';
import { createReplayMetrics, type VerifierMetrics } from '../verifier-metrics.ts';

export type ReplaySetup =
  | { readonly kind: 'memory'; readonly maxRecords?: number }
  | ({ readonly kind: 'redis' } & RedisAccess);

/** The site's Redis, and how to reach it. */
export type RedisAccess = Pick<
  RedisReplayStoreOptions,
  'url' | 'timeoutMs' | 'certificateAuthorities' | 'sentinelLogin' | 'declaredFailoverSettings'
>;

export interface ReplayInputs {
  /** Keeps the fence of a store in memory. */
  readonly stateDirectory: string;
  readonly holderQuotaPerMinute: number;
  readonly subjectQuotaPerMinute: number;
  /** Allowed clock skew of the current bundle, for readiness; undefined while no bundle is loaded. */
  readonly expectedSkewSeconds: () => number | undefined;
}

/** @throws RedisSettingError for an invalid URL */
export async function openReplay(
  replay: ReplaySetup,
  { stateDirectory, ...inputs }: ReplayInputs,
  logger: Logger,
  metrics: VerifierMetrics,
): Promise<ReplayStore> {
  const replayMetrics = createReplayMetrics(metrics.registry, REPLAY_FENCE_REASONS, () => {
    const { fence, links } = store.health();
    return { fenceSecondsLeft: fence?.secondsLeft ?? 0, links };
  });
  const observer: ReplayObserver = {
    fenceRaised(why) {
      replayMetrics.fenceRaised(why);
      logger.warn({ why }, 'replay fence: proofs signed before now are refused for a while');
    },
  };
  const store = await openStore(replay, stateDirectory, { ...inputs, observer });
  return store;
}

async function openStore(
  replay: ReplaySetup,
  stateDirectory: string,
  inputs: Omit<RedisReplayStoreOptions, 'url'>,
): Promise<ReplayStore> {
  if (replay.kind === 'redis') {
    const { createRedisReplayStore } = await import('../replay/redis.ts');
    return createRedisReplayStore({ ...inputs, ...replay });
  }
  const { createMemoryReplayStore } = await import('../replay/memory.ts');
  const { openPersistedFence } = await import('../replay/persisted-fence.ts');
  const persistedFence = await openPersistedFence(stateDirectory);
  return createMemoryReplayStore({ ...inputs, ...replay, persistedFence });
}
