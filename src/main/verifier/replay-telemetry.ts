/** What operators see of the replay store's fences: a line in the log, and metrics. */
import type { Logger } from '../../telemetry/logger.ts';
import type { VerifierMetrics } from '../../telemetry/metrics.ts';
import { createReplayMetrics } from '../../telemetry/replay-metrics.ts';
import { REPLAY_FENCE_REASONS, type ReplayHealth, type ReplayObserver } from '../../verifier/replay/store.ts';

/** @param health of the store that the observer is given to; read when somebody scrapes */
export function createReplayTelemetry(
  { registry }: VerifierMetrics,
  logger: Logger,
  health: () => ReplayHealth,
): ReplayObserver {
  const metrics = createReplayMetrics(registry, REPLAY_FENCE_REASONS, () => {
    const { fence, links } = health();
    return { fenceSecondsLeft: fence?.secondsLeft ?? 0, links };
  });
  return {
    fenceRaised(why) {
      metrics.fenceRaised(why);
      logger.warn({ why }, 'replay fence: proofs signed before now are refused for a while');
    },
  };
}
