/** Builds the verifier's bundle loading: from a directory, Control or both, with the state directory's mark and lock. */

import type { Snapshot } from '../../bundle/compile/snapshot.ts';
import { systemErrorCode, usageError } from '../../program/errors.ts';
import { assertStateDirectory } from '../../program/existing-directory.ts';
import { readPublicKeyFile } from '../../program/key-files.ts';
import { isIdentifier } from '../../protocol/identifiers.ts';
import type { PublicKey } from '../../protocol/public-key.ts';
import type { Logger } from '../../telemetry/logger.ts';
import type { VerifierMetrics } from '../../telemetry/metrics.ts';
import { createRefreshMetrics } from '../../telemetry/refresh-metrics.ts';
import { logBundleEvents, logRefreshEvents, logSharedMark } from '../../verifier/assembly/bundle-log.ts';
import { BundleLoader } from '../../verifier/loading/bundle-loader.ts';
import { FileMark } from '../../verifier/loading/high-water-mark.ts';
import type { ControlConnection } from '../../verifier/loading/refresh/control-connection.ts';
import { Refresher, type RefreshStatus } from '../../verifier/loading/refresh/refresher.ts';
import { MirroredMark } from '../../verifier/loading/shared-mark.ts';
import { type DirectoryLock, lockDirectory } from '../../verifier/loading/state/directory-lock.ts';
import { PersistedBundle } from '../../verifier/loading/state/persisted-bundle.ts';
import { openControlConnection } from './follow-control.ts';
import { openSharedMark, usesEmbeddedReplay } from './open-replay-store.ts';
import type { VerifierSettings } from './verifier-settings.ts';

export interface VerifierBundle {
  readonly loader: BundleLoader;
  /** Undefined when no Control is configured. */
  refreshStatus(): RefreshStatus | undefined;
  /** Loads the bundle that is available, then watches for updates in the background. Never rejects. */
  start(): Promise<void>;
  close(): Promise<void>;
}

/** @throws CliError for invalid settings */
export async function createVerifierBundle(
  settings: VerifierSettings,
  logger: Logger,
  metrics: VerifierMetrics,
): Promise<VerifierBundle> {
  const signers = await readSigners(settings);
  const { authSite, stateDir: stateDirectory } = settings;
  if (!isIdentifier(authSite)) {
    throw usageError('bad_auth_site', '--auth-site must be 1 to 512 visible ASCII characters without spaces');
  }
  await assertStateDirectory(stateDirectory);
  const connection = await openControlConnection(settings);
  const persisted = connection && new PersistedBundle(stateDirectory);
  const shared = await openSharedMark(settings);
  const own = new FileMark({ stateDirectory, authSite });
  const mirrored = shared && new MirroredMark({ own, shared, authSite, listener: logSharedMark(logger) });
  const mark = mirrored ?? own;
  const refreshMetrics = createRefreshMetrics(metrics.registry, () => refresher?.status().lastContactSeconds);
  const loader = new BundleLoader({
    authSite,
    directory: settings.bundle,
    persisted,
    ...signers,
    mark,
    nowSeconds,
    listener: logBundleEvents(logger, metrics, refreshMetrics),
    ...(usesEmbeddedReplay(settings.replay) ? { acceptSnapshot: refuseUnlessSingleVerifier } : {}),
  });
  const listener = logRefreshEvents(logger, refreshMetrics);
  let lock: DirectoryLock | undefined;
  const refresher = newRefresher({ authSite, connection, loader, persisted, mark, nowSeconds, listener });
  return {
    loader,
    refreshStatus: () => refresher?.status(),
    async start() {
      lock = await lockIfPossible(stateDirectory, logger);
      await mirrored?.start();
      await loader.start();
      refresher?.start();
    },
    async close() {
      await refresher?.close();
      loader.close();
      await persisted?.close();
      await mirrored?.close();
      await shared?.close();
      await lock?.release();
    },
  };
}

/** Serves without a lock on a file system without sockets. `bundle reset-mark` then cannot see that the directory is in use. */
async function lockIfPossible(stateDirectory: string, logger: Logger): Promise<DirectoryLock | undefined> {
  try {
    return await lockDirectory(stateDirectory);
  } catch (error) {
    const code = systemErrorCode(error) ?? 'error';
    logger.warn({ code }, '--state-dir takes no sockets: bundle reset-mark cannot see that it is in use');
    return undefined;
  }
}

function newRefresher({
  connection,
  persisted,
  ...options
}: Omit<ConstructorParameters<typeof Refresher>[0], 'connection' | 'persisted'> & {
  readonly connection: ControlConnection | undefined;
  readonly persisted: PersistedBundle | undefined;
}): Refresher | undefined {
  if (connection === undefined || persisted === undefined) return undefined;
  return new Refresher({ connection, persisted, ...options });
}

export async function readSigners(settings: VerifierSettings) {
  const bundleKeys = await readKeys(settings.bundleKeys);
  const freshnessKeys = await readKeys(settings.freshnessKeys);
  const { bundleThreshold, freshnessThreshold } = settings;
  const statedBy = freshnessKeys.length > 0 ? freshnessKeys : bundleKeys;
  return {
    bundleSigners: signersOf(bundleKeys, bundleThreshold, 'bundle'),
    freshnessSigners: signersOf(statedBy, freshnessThreshold, 'freshness'),
  };
}

/** @throws CliError `bundle_threshold_too_high`, `freshness_threshold_too_high`: no signature set could reach it */
function signersOf(
  keys: readonly PublicKey[],
  threshold: number,
  role: 'bundle' | 'freshness',
): { readonly keys: readonly PublicKey[]; readonly threshold: number } {
  if (threshold > new Set(keys.map(({ thumbprint }) => thumbprint)).size) {
    const text = `--${role}-threshold is more than there are ${role} keys`;
    throw usageError(`${role}_threshold_too_high`, text);
  }
  return { keys, threshold };
}

function readKeys(paths: readonly string[]): Promise<readonly PublicKey[]> {
  return Promise.all(paths.map(readPublicKeyFile));
}

/** The embedded store does not know which proofs other verifiers consumed. */
function refuseUnlessSingleVerifier({ singleVerifier }: Snapshot): string | undefined {
  return singleVerifier ? undefined : '--replay memory takes only bundles that say single_verifier: true';
}

export function nowSeconds(): number {
  return Math.floor(Date.now() / 1000);
}
