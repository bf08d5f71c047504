/** Builds a worker's bundle loading, which only reads the bundle directory and the primary's state directory. */

import type { Logger } from '../../../telemetry/logger.ts';
import type { VerifierMetrics } from '../../../telemetry/metrics.ts';
import { createRefreshMetrics } from '../../../telemetry/refresh-metrics.ts';
import { logBundleEvents } from '../../../verifier/assembly/bundle-log.ts';
import { BundleLoader } from '../../../verifier/loading/bundle-loader.ts';
import { PrimaryMark } from '../../../verifier/loading/state/primary-mark.ts';
import { StateFollower } from '../../../verifier/loading/state/state-follower.ts';
import { nowSeconds, readSigners, type VerifierBundle } from '../verifier-bundle.ts';
import type { VerifierSettings } from '../verifier-settings.ts';

export async function createWorkerBundle(
  settings: VerifierSettings,
  logger: Logger,
  metrics: VerifierMetrics,
): Promise<VerifierBundle> {
  const { authSite, stateDir: stateDirectory } = settings;
  const signers = await readSigners(settings);
  const loader = new BundleLoader({
    authSite,
    directory: settings.bundle,
    ...signers,
    mark: new PrimaryMark({ stateDirectory, authSite }),
    nowSeconds,
    listener: logBundleEvents(
      logger,
      metrics,
      createRefreshMetrics(metrics.registry, () => undefined),
    ),
  });
  const follower = settings.controlUrl === undefined ? undefined : new StateFollower(stateDirectory, loader);
  return {
    loader,
    refreshStatus: () => undefined,
    start: async () => {
      await Promise.all([loader.start(), follower?.start()]);
    },
    close: async () => {
      follower?.close();
      loader.close();
    },
  };
}
