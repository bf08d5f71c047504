/** Reports replay fences to the log and the metrics. */
import type { Logger } from '../../telemetry/logger.ts';
import type { VerifierMetrics } from '../../telemetry/metrics.ts';
import { createReplayMetrics } from '../../telemetry/replay-metrics.ts';
import { REPLAY_FENCE_REASONS, type ReplayHealth, type ReplayObserver } from '../../verifier/replay/store.ts';

/** @param health health of the observed store, read at each metrics scrape */
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
