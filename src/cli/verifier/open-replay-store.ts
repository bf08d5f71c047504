/** `--replay`: which store remembers the proofs that were presented. */
import type { ReplayStore } from '../../verifier/replay/store.ts';
import { usageError } from '../errors.ts';
import { readInputText } from '../input-files.ts';
import type { VerifierSettings } from './settings.ts';

const MAX_CA_FILE_BYTES = 1024 * 1024;

export function usesEmbeddedReplay(replay: string): boolean {
  return replay === 'memory';
}

/**
 * Looks at the setting alone, so that a slip in it is told before anything is started.
 * @throws CliError `bad_replay_store`
 */
export async function assertReplaySetting({ replay }: VerifierSettings): Promise<void> {
  if (usesEmbeddedReplay(replay)) return;
  if (!/^rediss?(?:-[a-z]+)?:\/\//.test(replay)) {
    throw usageError('bad_replay_store', '--replay must be memory or a redis:// URL');
  }
  const { parseRedisEndpoint } = await import('../../verifier/redis/endpoint.ts');
  await refusingBadSettings(() => parseRedisEndpoint(replay));
}

/**
 * @param expectedSkewSeconds of the bundle in force, for readiness; undefined while there is none
 * @throws CliError `bad_replay_store`
 */
export async function openReplayStore(
  { holderQuota, redisCaFile, redisTimeoutMs, replay }: VerifierSettings,
  expectedSkewSeconds: () => number | undefined,
): Promise<ReplayStore> {
  const common = { holderQuotaPerMinute: holderQuota, expectedSkewSeconds };
  if (usesEmbeddedReplay(replay)) {
    const { createMemoryReplayStore } = await import('../../verifier/replay/memory.ts');
    return createMemoryReplayStore(common);
  }
  const { createRedisReplayStore } = await import('../../verifier/replay/redis.ts');
  const authorities =
    redisCaFile === undefined
      ? {}
      : { certificateAuthorities: await readInputText(redisCaFile, MAX_CA_FILE_BYTES) };
  return refusingBadSettings(() =>
    createRedisReplayStore({ ...common, ...authorities, url: replay, timeoutMs: redisTimeoutMs }),
  );
}

async function refusingBadSettings<T>(use: () => T): Promise<T> {
  const { RedisSettingError } = await import('../../verifier/redis/endpoint.ts');
  try {
    return use();
  } catch (error) {
    if (!(error instanceof RedisSettingError)) throw error;
    throw usageError('bad_replay_store', `--replay: ${error.message}`);
  }
}
