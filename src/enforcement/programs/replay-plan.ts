/** Validates `--replay` and the settings of Redis. Connects to nothing. */

import { readCaFile, readInputText } from '../../process/files/input-files.ts';
import { usageError } from '../../process/program/errors.ts';
import type { RedisAccess, ReplaySetup } from '../../verifier/assembly/open-replay.ts';
import type { EnforcementSettings } from './enforcement-settings.ts';

const MAX_PASSWORD_FILE_BYTES = 4096;
const REDIS_SCHEME = /^rediss?(?:-[a-z]+)?:\/\//;

/** Flags that apply to Redis only. */
const REDIS_FLAGS: { readonly [S in Extract<keyof EnforcementSettings, `redis${string}`>]: string } = {
  redisTimeoutMs: '--redis-timeout',
  redisPasswordFile: '--redis-password-file',
  redisCaFile: '--redis-ca-file',
  redisSentinelUser: '--redis-sentinel-user',
  redisSentinelPasswordFile: '--redis-sentinel-password-file',
  redisMinReplicasToWrite: '--redis-min-replicas-to-write',
  redisMinReplicasMaxLagMs: '--redis-min-replicas-max-lag',
  redisClusterNodeTimeoutMs: '--redis-cluster-node-timeout',
};

/** @throws CliError `bad_replay_store`, `max_replay_records_unused`, `redis_setting_unused`, or an error of a file */
export async function planReplay(settings: EnforcementSettings): Promise<ReplaySetup> {
  const { maxReplayRecords: maxRecords, redisTimeoutMs: timeoutMs, replay } = settings;
  if (replay === 'memory') {
    assertNoRedisSetting(settings);
    return { kind: 'memory', ...(maxRecords === undefined ? {} : { maxRecords }) };
  }
  if (settings.redisSentinelUser !== undefined && settings.redisSentinelPasswordFile === undefined) {
    throw usageError('bad_replay_store', '--redis-sentinel-user needs --redis-sentinel-password-file');
  }
  if (maxRecords !== undefined) {
    const text = '--max-replay-records is for --replay memory; what Redis may hold is its maxmemory';
    throw usageError('max_replay_records_unused', text);
  }
  if (!REDIS_SCHEME.test(replay)) {
    throw usageError(
      'bad_replay_store',
      '--replay must be memory or a redis://, redis-sentinel:// or redis-cluster:// URL',
    );
  }
  return {
    kind: 'redis',
    ...(await planRedis('replay', replay, settings)),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    declaredFailoverSettings: {
      minReplicasToWrite: settings.redisMinReplicasToWrite,
      // Rounded up: a longer fence is safe, a shorter one is not.
      minReplicasMaxLagSeconds: ceilSeconds(settings.redisMinReplicasMaxLagMs),
      clusterNodeTimeoutMs: settings.redisClusterNodeTimeoutMs,
    },
  };
}

/** A Redis flag with `--replay memory` suggests that the operator expects Redis to be used. */
function assertNoRedisSetting(settings: EnforcementSettings): void {
  const given = new Set(
    Object.entries(settings).flatMap(([name, value]) => (value === undefined ? [] : name)),
  );
  const [, flag] = Object.entries(REDIS_FLAGS).find(([name]) => given.has(name)) ?? [];
  if (flag === undefined) return;
  throw usageError('redis_setting_unused', `${flag} is for a URL of Redis in --replay, which is memory`);
}

export type RedisTrustSettings = Pick<
  EnforcementSettings,
  'redisCaFile' | 'redisPasswordFile' | 'redisSentinelPasswordFile' | 'redisSentinelUser'
>;

/**
 * Validates the URL of Redis, and reads the CA file and the password files.
 * @param flag the flag that holds the URL, for the message
 * @throws CliError `bad_replay_store`, or an error of a file
 */
export async function planRedis(
  flag: 'replay' | 'redis',
  url: string,
  settings: RedisTrustSettings,
): Promise<RedisAccess> {
  const { parseRedisEndpoint, RedisSettingError, withPassword } = await import(
    '../../verifier/redis/endpoint.ts'
  );
  const password = await readPassword(settings.redisPasswordFile);
  let completeUrl = url;
  try {
    parseRedisEndpoint(url);
    if (password !== undefined) completeUrl = withPassword(url, password);
  } catch (error) {
    if (!(error instanceof RedisSettingError)) throw error;
    throw usageError('bad_replay_store', `--${flag}: ${error.message}`);
  }
  const certificateAuthorities = await readCaFile(settings.redisCaFile);
  const { redisSentinelUser: username } = settings;
  const sentinelPassword = await readPassword(settings.redisSentinelPasswordFile);
  return {
    url: completeUrl,
    ...(certificateAuthorities === undefined ? {} : { certificateAuthorities }),
    ...(sentinelPassword === undefined
      ? {}
      : { sentinelLogin: { username, revealPassword: () => sentinelPassword } }),
  };
}

async function readPassword(file: string | undefined): Promise<string | undefined> {
  return file && (await readInputText(file, MAX_PASSWORD_FILE_BYTES)).replace(/\r?\n$/, '');
}

function ceilSeconds(ms: number | undefined): number | undefined {
  return ms === undefined ? undefined : Math.ceil(ms / 1000);
}
