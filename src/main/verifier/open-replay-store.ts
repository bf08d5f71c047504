/** Opens the replay store and the shared mark that `--replay` selects. */

import { readCaFile } from '../../program/ca-file.ts';
import { usageError } from '../../program/errors.ts';
import { readInputText } from '../../program/input-files.ts';
import type { SharedMark } from '../../verifier/loading/shared-mark.ts';
import type { RedisLogin } from '../../verifier/redis/endpoint.ts';
import type { ReplayObserver, ReplayStore } from '../../verifier/replay/store.ts';
import type { VerifierSettings } from './verifier-settings.ts';

const MAX_PASSWORD_FILE_BYTES = 4096;
const REDIS_SCHEME = /^rediss?(?:-[a-z]+)?:\/\//;

/** Flags that apply to Redis only. */
const REDIS_FLAGS: { readonly [S in Extract<keyof VerifierSettings, `redis${string}`>]: string } = {
  redisTimeoutMs: '--redis-timeout',
  redisCaFile: '--redis-ca-file',
  redisSentinelUser: '--redis-sentinel-user',
  redisSentinelPasswordFile: '--redis-sentinel-password-file',
  redisMinReplicasToWrite: '--redis-min-replicas-to-write',
  redisMinReplicasMaxLagMs: '--redis-min-replicas-max-lag',
  redisClusterNodeTimeoutMs: '--redis-cluster-node-timeout',
};

export function usesEmbeddedReplay(replay: string): boolean {
  return replay === 'memory';
}

/**
 * Validates the settings without connecting, so that a mistake fails the start before anything is opened.
 * @throws CliError `bad_replay_store`, `max_replay_records_unused`, `redis_setting_unused`
 */
export async function assertReplaySetting(settings: VerifierSettings): Promise<void> {
  const { redisSentinelPasswordFile, redisSentinelUser, replay } = settings;
  if (usesEmbeddedReplay(replay)) return assertNothingSaidOfRedis(settings);
  if (redisSentinelUser !== undefined && redisSentinelPasswordFile === undefined) {
    throw usageError('bad_replay_store', '--redis-sentinel-user needs --redis-sentinel-password-file');
  }
  if (settings.maxReplayRecords !== undefined) {
    const text = '--max-replay-records is for --replay memory; what Redis may hold is its maxmemory';
    throw usageError('max_replay_records_unused', text);
  }
  if (!REDIS_SCHEME.test(replay)) {
    throw usageError(
      'bad_replay_store',
      '--replay must be memory or a redis://, redis-sentinel:// or redis-cluster:// URL',
    );
  }
  const { parseRedisEndpoint } = await import('../../verifier/redis/endpoint.ts');
  await refusingBadSettings(() => parseRedisEndpoint(replay));
}

/** A Redis flag with `--replay memory` suggests that the operator expects Redis to be used. */
function assertNothingSaidOfRedis(settings: VerifierSettings): void {
  const said = new Set(
    Object.entries(settings).flatMap(([name, value]) => (value === undefined ? [] : name)),
  );
  const [, flag] = Object.entries(REDIS_FLAGS).find(([name]) => said.has(name)) ?? [];
  if (flag === undefined) return;
  throw usageError('redis_setting_unused', `${flag} is for a URL of Redis in --replay, which is memory`);
}

export interface ReplayStoreInputs {
  /** Allowed clock skew of the current bundle, for readiness; undefined while no bundle is loaded. */
  readonly expectedSkewSeconds: () => number | undefined;
  readonly observer: ReplayObserver;
}

/** @throws CliError `bad_replay_store` */
export async function openReplayStore(
  settings: VerifierSettings,
  inputs: ReplayStoreInputs,
): Promise<ReplayStore> {
  const { holderQuota, replay } = settings;
  const common = { holderQuotaPerMinute: holderQuota, ...inputs };
  if (usesEmbeddedReplay(replay)) {
    const { createMemoryReplayStore } = await import('../../verifier/replay/memory.ts');
    const { openPersistedFence } = await import('../../verifier/replay/persisted-fence.ts');
    const { maxReplayRecords, stateDir } = settings;
    return createMemoryReplayStore({
      ...common,
      persistedFence: await openPersistedFence(stateDir),
      ...(maxReplayRecords === undefined ? {} : { maxRecords: maxReplayRecords }),
    });
  }
  const { createRedisReplayStore } = await import('../../verifier/replay/redis.ts');
  const { redisTimeoutMs: timeoutMs } = settings;
  const redis = {
    ...common,
    ...(await readRedisAccess(settings)),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
  };
  return refusingBadSettings(() => createRedisReplayStore(redis));
}

/**
 * The high-water mark that the site's verifiers share in the same Redis. Undefined with the embedded store, which allows
 * one verifier only.
 * @throws CliError `bad_replay_store`
 */
export async function openSharedMark(settings: VerifierSettings): Promise<SharedMark | undefined> {
  if (usesEmbeddedReplay(settings.replay)) return undefined;
  const { createRedisSharedMark } = await import('../../verifier/redis/redis-shared-mark.ts');
  const redis = await readRedisAccess(settings);
  return refusingBadSettings(() => createRedisSharedMark(redis));
}

/** As {@link openSharedMark}, for a command that has `--redis`. @throws CliError `bad_replay_store` */
export async function openSharedMarkAt(url: string, settings: RedisTrustSettings): Promise<SharedMark> {
  const { createRedisSharedMark } = await import('../../verifier/redis/redis-shared-mark.ts');
  const redis = { url, ...(await readRedisTrust(settings)) };
  return refusingBadSettings(() => createRedisSharedMark(redis), 'redis');
}

async function readRedisAccess(settings: VerifierSettings) {
  return {
    url: settings.replay,
    ...(await readRedisTrust(settings)),
    declaredFailoverSettings: {
      minReplicasToWrite: settings.redisMinReplicasToWrite,
      // Rounded up: a longer fence is safe, a shorter one is not.
      minReplicasMaxLagSeconds: ceilSeconds(settings.redisMinReplicasMaxLagMs),
      clusterNodeTimeoutMs: settings.redisClusterNodeTimeoutMs,
    },
  };
}

/** Reads the CA file and the Sentinel password file. @throws CliError an error of a file */
export async function readRedisTrust(settings: RedisTrustSettings) {
  return { ...(await readAuthorities(settings)), ...(await readSentinelLogin(settings)) };
}

export type RedisTrustSettings = Pick<
  VerifierSettings,
  'redisCaFile' | 'redisSentinelPasswordFile' | 'redisSentinelUser'
>;

async function readAuthorities({ redisCaFile }: RedisTrustSettings) {
  const certificateAuthorities = await readCaFile(redisCaFile);
  return certificateAuthorities === undefined ? {} : { certificateAuthorities };
}

async function readSentinelLogin(settings: RedisTrustSettings): Promise<{ sentinelLogin?: RedisLogin }> {
  const { redisSentinelPasswordFile: file, redisSentinelUser: username } = settings;
  if (file === undefined) return {};
  const password = (await readInputText(file, MAX_PASSWORD_FILE_BYTES)).replace(/\r?\n$/, '');
  return { sentinelLogin: { username, revealPassword: () => password } };
}

function ceilSeconds(ms: number | undefined): number | undefined {
  return ms === undefined ? undefined : Math.ceil(ms / 1000);
}

/** @param flag the flag that holds the URL, for the message */
async function refusingBadSettings<T>(use: () => T, flag = 'replay'): Promise<T> {
  const { RedisSettingError } = await import('../../verifier/redis/endpoint.ts');
  try {
    return use();
  } catch (error) {
    if (!(error instanceof RedisSettingError)) throw error;
    throw usageError('bad_replay_store', `--${flag}: ${error.message}`);
  }
}
