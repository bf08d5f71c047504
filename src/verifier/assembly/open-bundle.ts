/** Opens the verifier's bundle loading: from a directory, Control or both, with the state directory's mark and lock. */
import type { Snapshot } from '../../bundle/compile/snapshot.ts';
import type { Signers } from '../../bundle/format/documents.ts';
import { type DirectoryLock, lockDirectory } from '../../process/files/directory-lock.ts';
import { packageVersion } from '../../process/program/version.ts';
import type { Logger } from '../../process/telemetry/log.ts';
import { secondsUntilStale } from '../decision/steps/freshness.ts';
import { BreakGlassFile, type BreakGlassStatus } from '../loading/break-glass-file.ts';
import { type BundleListener, BundleLoader } from '../loading/bundle-loader.ts';
import type { ControlConnectionOptions } from '../loading/refresh/control-connection.ts';
import type { InstanceOptions } from '../loading/refresh/instance.ts';
import { Refresher, type RefreshStatus } from '../loading/refresh/refresher.ts';
import { FileMark } from '../loading/state/high-water-mark.ts';
import { PersistedBundle } from '../loading/state/persisted-bundle.ts';
import { PrimaryMark } from '../loading/state/primary-mark.ts';
import { MirroredMark, type SharedMark } from '../loading/state/shared-mark.ts';
import { StateFollower } from '../loading/state-follower.ts';
import type { Observations } from '../observation/observations.ts';
import { createRefreshMetrics, type VerifierMetrics } from '../verifier-metrics.ts';
import { logBreakGlass, logBundleEvents, logRefreshEvents, logSharedMark } from './bundle-log.ts';
import type { ReplaySetup } from './open-replay.ts';

export interface BundleSetup {
  readonly authSite: string;
  /** Holds the mark, and the bundle from Control. Must exist: an unmounted volume must not look like an empty one. */
  readonly stateDirectory: string;
  /** Whether another process, the primary, owns the state directory. This one then only reads it. */
  readonly isWorker: boolean;
  /** Directory with the signed bundle. At least one of `directory` and `control` is given. */
  readonly directory: string | undefined;
  readonly control: ControlConnectionOptions | undefined;
  readonly bundleSigners: Signers;
  readonly freshnessSigners: Signers;
  /** Undefined when no `--break-glass-file` is configured. */
  readonly breakGlass: { readonly file: string; readonly signers: Signers } | undefined;
  /** Maximum age of the bundle for `realtime` routes. */
  readonly realtimeStalenessSeconds: number;
  /** A store in Redis also holds the mark that the site's verifiers share; one in memory serves only one verifier. */
  readonly replay: ReplaySetup;
}

export interface OpenBundle extends BundleLoading {
  /** Undefined when no break-glass file is configured. */
  breakGlassStatus(): BreakGlassStatus | undefined;
}

interface BundleLoading {
  readonly loader: BundleLoader;
  /** Undefined when no Control is configured. */
  refreshStatus(): RefreshStatus | undefined;
  /** Loads the bundle that is available, then watches for updates in the background. Never rejects. */
  start(): Promise<void>;
  close(): Promise<void>;
}

const STORE_ID_TIMEOUT_MS = 2_000;

export function nowSeconds(): number {
  return Math.floor(Date.now() / 1000);
}

/**
 * Connects to nothing before `start`, except to Redis.
 * @param observations follows each bundle that is loaded, before requests are decided by it
 * @throws RedisSettingError for an invalid URL
 */
export async function openBundle(
  setup: BundleSetup,
  logger: Logger,
  metrics: VerifierMetrics,
  observations: FollowingObservations,
): Promise<OpenBundle> {
  const opened = setup.isWorker
    ? followPrimary(setup, logger, metrics, observations)
    : await ownState(setup, logger, metrics, observations);
  const { authSite, breakGlass: configured } = setup;
  let file: BreakGlassFile | undefined;
  return {
    ...opened,
    breakGlassStatus: () => file?.status(),
    async start() {
      file =
        configured &&
        new BreakGlassFile({ authSite, ...configured }, opened.loader, logBreakGlass(logger, metrics));
      await opened.start();
    },
    async close() {
      file?.close();
      await opened.close();
    },
  };
}

type FollowingObservations = Pick<Observations, 'enforced' | 'follow'>;

async function ownState(
  setup: BundleSetup,
  logger: Logger,
  metrics: VerifierMetrics,
  observations: FollowingObservations,
): Promise<BundleLoading> {
  const { authSite, stateDirectory } = setup;
  const shared = await openSharedMark(setup.replay);
  const readStoreId = shared && (() => shared.storeId(authSite, STORE_ID_TIMEOUT_MS));
  const connection = await openConnection(setup.control, observations, readStoreId);
  const persisted = connection && new PersistedBundle(stateDirectory);
  const own = new FileMark({ stateDirectory, authSite });
  const mirrored = shared && new MirroredMark({ own, shared, authSite, listener: logSharedMark(logger) });
  const mark = mirrored ?? own;
  const refreshMetrics = createRefreshMetrics(metrics.registry, () => refresher?.status().lastContactSeconds);
  const loader = new BundleLoader({
    ...setup,
    persisted,
    mark,
    nowSeconds,
    listener: reporting(logBundleEvents(logger, metrics, refreshMetrics), observations),
    acceptSnapshot: setup.replay.kind === 'memory' ? refuseUnlessSingleVerifier : undefined,
  });
  const listener = logRefreshEvents(logger, refreshMetrics);
  const refresher =
    connection &&
    persisted &&
    new Refresher({
      authSite,
      connection,
      loader,
      persisted,
      mark,
      nowSeconds,
      secondsUntilStale: () =>
        secondsUntilStale(loader.snapshot, nowSeconds(), setup.realtimeStalenessSeconds),
      listener,
    });
  let lock: DirectoryLock | undefined;
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

function reporting(listener: BundleListener, observations: FollowingObservations): BundleListener {
  return {
    ...listener,
    loaded: (snapshot, change) => {
      observations.follow(snapshot);
      listener.loaded?.(snapshot, change);
    },
  };
}

/** Reads the bundle directory and the primary's state directory, and follows only what the primary has accepted. */
function followPrimary(
  setup: BundleSetup,
  logger: Logger,
  metrics: VerifierMetrics,
  observations: FollowingObservations,
): BundleLoading {
  const { stateDirectory } = setup;
  const refreshMetrics = createRefreshMetrics(metrics.registry, () => undefined);
  const loader = new BundleLoader({
    ...setup,
    mark: new PrimaryMark(setup),
    nowSeconds,
    listener: reporting(logBundleEvents(logger, metrics, refreshMetrics), observations),
  });
  const follower = setup.control && new StateFollower(stateDirectory, loader);
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

/** Loaded on demand: its HTTP client takes some MiB that a verifier without Control does not need. */
async function openConnection(
  control: ControlConnectionOptions | undefined,
  observations: FollowingObservations,
  readStoreId: InstanceOptions['readStoreId'],
) {
  if (control === undefined) return undefined;
  const { ControlConnection } = await import('../loading/refresh/control-connection.ts');
  const { Instance } = await import('../loading/refresh/instance.ts');
  const instance = new Instance({ version: packageVersion(), readStoreId });
  return new ControlConnection({
    ...control,
    readEnforced: () => observations.enforced(),
    readInstance: () => instance.text(),
  });
}

async function openSharedMark(replay: ReplaySetup): Promise<SharedMark | undefined> {
  if (replay.kind === 'memory') return undefined;
  const { createRedisSharedMark } = await import('../redis/redis-shared-mark.ts');
  return createRedisSharedMark(replay);
}

/** Serves without a lock on a file system without sockets. `bundle reset-mark` then cannot see that the directory is in use. */
async function lockIfPossible(stateDirectory: string, logger: Logger): Promise<DirectoryLock | undefined> {
  try {
    return await lockDirectory(stateDirectory);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : 'error';
    logger.warn(
      { code },
      'the state directory takes no sockets: bundle reset-mark cannot see that it is in use',
    );
    return undefined;
  }
}

/** The store in memory does not know which proofs other verifiers consumed. */
function refuseUnlessSingleVerifier({ singleVerifier }: Snapshot): string | undefined {
  return singleVerifier ? undefined : 'a replay store in memory needs a bundle with single_verifier: true';
}
