/** Reports bundle loading and refreshing to the log and the metrics. */
import type { StepKind } from '../../bundle/format/file-names.ts';
import type { Logger } from '../../process/telemetry/log.ts';
import { formatTime } from '../../protocol/rfc3339.ts';
import type { BreakGlassListener } from '../loading/break-glass-file.ts';
import type { BundleListener } from '../loading/bundle-loader.ts';
import type { RefreshListener } from '../loading/refresh/refresher.ts';
import type { MirroredMarkListener } from '../loading/state/shared-mark.ts';
import type { RefreshMetrics, VerifierMetrics } from '../verifier-metrics.ts';

export function logBundleEvents(
  logger: Logger,
  metrics: VerifierMetrics,
  refreshMetrics: RefreshMetrics,
): BundleListener {
  return {
    loaded({ revision, head, routes, keys, warnings }, { durationMs, source }) {
      logger.info(
        { revision, head, source, routes: routes.size, keys: keys.size, duration_ms: Math.round(durationMs) },
        'bundle loaded',
      );
      for (const { code, path, text } of warnings) logger.warn({ code, path }, `in the bundle: ${text}`);
    },
    // Logged at debug level, because a busy site has several a second.
    advanced({ revision, head, keys }, steps, durationMs) {
      countSteps(refreshMetrics, steps);
      logger.debug(
        { revision, head, steps: steps.length, keys: keys.size, duration_ms: Math.round(durationMs) },
        'bundle updated',
      );
    },
    refused(error, source) {
      metrics.bundleRefused(error.code);
      logger.error({ code: error.code, source }, `bundle refused: ${error.message}`);
    },
    freshnessRefused(error) {
      metrics.bundleRefused(error.code);
      logger.error({ code: error.code }, `freshness statement refused: ${error.message}`);
    },
    // Every publication causes this for a moment, between writing the bundle and writing its statement.
    freshnessIgnored: (why, { revision }) =>
      logger.info({ why, revision }, 'freshness statement not applied'),
  };
}

export function logBreakGlass(logger: Logger, metrics: VerifierMetrics): BreakGlassListener {
  return {
    accepted: ({ fromSeconds, head, revision, signers, untilSeconds }) =>
      logger.warn(
        { revision, head, from: formatTime(fromSeconds), until: formatTime(untilSeconds), signers },
        'break-glass statement accepted',
      ),
    refused({ code, text }) {
      metrics.bundleRefused(code);
      logger.error({ code }, `break-glass statement refused: ${text}`);
    },
    removed: () => logger.info('break-glass statement removed'),
  };
}

function countSteps(metrics: RefreshMetrics, steps: readonly StepKind[]): void {
  for (const kind of ['delta', 'link'] as const) {
    const count = steps.filter((step) => step === kind).length;
    if (count > 0) metrics.stepsApplied(kind, count);
  }
}

export function logRefreshEvents(logger: Logger, metrics: RefreshMetrics): RefreshListener {
  return {
    polled: (outcome) => metrics.polled(outcome),
    failed(activity, code, text) {
      metrics.controlFailed(activity, code);
      logger.warn({ code, activity }, `following Control fails: ${text}`);
    },
    recovered: (activity) => logger.info({ activity }, 'following Control works again'),
    acknowledged: ({ revision, head }, outcome) =>
      logger.debug({ revision, head, outcome }, 'acknowledged to Control'),
    late: ({ revision, workers }) =>
      logger.warn({ revision, workers }, 'not acknowledged to Control: workers have not loaded the revision'),
    rebased: (revision, bytes) => logger.info({ revision, bytes }, 'newer base kept in the state directory'),
  };
}

export function logSharedMark(logger: Logger): MirroredMarkListener {
  return {
    bound: ({ revision }) =>
      logger.info({ revision }, 'no mark in the state directory: the shared one says what may be loaded'),
    raiseFailed: ({ fault, message }) => logger.warn({ fault }, `the shared mark is not raised: ${message}`),
    raiseWorksAgain: () => logger.info('the shared mark is raised again'),
    disagrees: (own, shared) =>
      logger.error(
        { revision: own.revision, head: own.head, shared_head: shared.head },
        'another verifier of this site accepted another content as this revision',
      ),
  };
}
