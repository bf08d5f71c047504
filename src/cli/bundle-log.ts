/** What happens to bundles, as log lines and metrics. */
import type { BundleListener } from '../bundle/holder.ts';
import type { Logger } from '../telemetry/logger.ts';
import type { VerifierMetrics } from '../telemetry/metrics.ts';

export function logBundleEvents(logger: Logger, metrics: VerifierMetrics): BundleListener {
  return {
    loaded: ({ revision, head, routes, keys }, { durationMs }) =>
      logger.info(
        { revision, head, routes: routes.size, keys: keys.size, duration_ms: Math.round(durationMs) },
        'bundle loaded',
      ),
    refused(error) {
      metrics.bundleRefused(error.code);
      logger.error({ code: error.code }, `bundle refused: ${error.message}`);
    },
    freshnessRefused(error) {
      metrics.bundleRefused(error.code);
      logger.error({ code: error.code }, `freshness statement refused: ${error.message}`);
    },
    // Between the writing of a bundle and of its statement every publication passes through this.
    freshnessIgnored: (why, { revision }) =>
      logger.info({ why, revision }, 'freshness statement not applied'),
  };
}
