/** Opens the verifier's bundle loading: from a directory, Control or both, with the state directory's mark. */
import type { Snapshot } from '../../bundle/compile/snapshot.ts';
import type { ChainPosition } from '../../bundle/format/chain.ts';
import type { CountedDecision } from '../../bundle/format/decision-summary.ts';
import type { Signers } from '../../bundle/format/documents.ts';
import type { MacKeys } from '../../process/files/mac-keys.ts';
import { packageVersion } from '../../process/program/version.ts';
import type { Logger } from '../../process/telemetry/log.ts';
import { secondsUntilStale } from '../decision/steps/freshness.ts';
import { BreakGlassFile, type BreakGlassStatus } from '../loading/break-glass-file.ts';
import { type BundleListener, BundleLoader } from '../loading/bundle-loader.ts';
import type { WorkerPositions } from '../loading/refresh/common-position.ts';
import type { ControlConnectionOptions } from '../loading/refresh/control-connection.ts';
import type { InstanceOptions } from '../loading/refresh/instance.ts';
import { Refresher, type RefreshStatus } from '../loading/refresh/refresher.ts';
import { FileMark } from '../loading/state/high-water-mark.ts';
import { PersistedBundle } from '../loading/state/persisted-bundle.ts';
import { PrimaryMark } from '../loading/state/primary-mark.ts';
import { MirroredMark, type SharedMark } from '../loading/state/shared-mark.ts';
import { StateFollower } from '../loading/state-follower.ts';
import type { Observations } from '../observation/observations.ts';
import { LastUsedReporter } from '../summaries/last-used-reporter.ts';
import { SummaryPoster } from '../summaries/summary-poster.ts';
import { UnknownKeysReporter } from '../summaries/unknown-keys-reporter.ts';
import { WorkerCounts, type WorkerReport } from '../summaries/worker-counts.ts';
import {
  createLastUsedMetrics,
  createRefreshMetrics,
  createSummaryMetrics,
  type VerifierMetrics,
} from '../verifier-metrics.ts';
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
  /** Keys of nonces for DPoP, shared by replicas; undefined: a random one for this process. */
  readonly dpopNonceKeys?: MacKeys | undefined;
  /** Which bundles may require nonces: without a shared key, verifiers do not know each other's. Default: `single_verifier`. */
  readonly dpopNonces?: 'any' | 'single_verifier' | 'none';
}

export interface OpenBundle extends BundleLoading {
  /** Undefined when no break-glass file is configured. */
  breakGlassStatus(): BreakGlassStatus | undefined;
}

interface BundleLoading {
  readonly loader: BundleLoader;
  /** Undefined when no Control is configured. */
  refreshStatus(): RefreshStatus | undefined;
  /** Counts a decision for Control. Undefined when no Control is configured. */
  readonly countDecision: ((decision: CountedDecision) => void) | undefined;
  /** Adds what a worker process counted. Undefined in a worker, and when no Control is configured. */
  readonly mergeReport: ((report: WorkerReport) => void) | undefined;
  /** Takes what worker processes load. Undefined in a worker, and when no Control is configured. */
  readonly workers: WorkerPositions | undefined;
  /** Loads the bundle that is available, then watches for updates in the background. Never rejects. */
  start(): Promise<void>;
  close(): Promise<void>;
}

/** What a worker sends to its primary. */
export interface PrimaryLink {
  /** What was counted of decisions since the last call. */
  handOver(report: WorkerReport): void;
  /** Requests are decided by the bundle at this position from now on. */
  loaded(position: ChainPosition): void;
}

const STORE_ID_TIMEOUT_MS = 2_000;

export function nowSeconds(): number {
  return Math.floor(Date.now() / 1000);
}

/**
 * Connects to nothing before `start`, except to Redis.
 * @param observations follows each bundle that is loaded, before requests are decided by it
 * @param primary of a worker
 * @throws RedisSettingError for an invalid URL
 */
export async function openBundle(
  setup: BundleSetup,
  logger: Logger,
  metrics: VerifierMetrics,
  observations: FollowingObservations,
  primary?: PrimaryLink,
): Promise<OpenBundle> {
  const opened = setup.isWorker
    ? followPrimary(setup, logger, metrics, observations, primary)
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

/** `prepare` only where several processes decide by the same bundles. */
type FollowingObservations = Pick<Observations, 'enforced' | 'follow'> &
  Partial<Pick<Observations, 'prepare'>>;

async function ownState(
  setup: BundleSetup,
  logger: Logger,
  metrics: VerifierMetrics,
  observations: FollowingObservations,
): Promise<BundleLoading> {
  const { authSite, stateDirectory } = setup;
  const shared = await openSharedMark(setup.replay);
  const readStoreId = shared && (() => shared.storeId(authSite, STORE_ID_TIMEOUT_MS));
  const connection = await openConnection(setup, observations, readStoreId);
  const persisted = connection && new PersistedBundle(stateDirectory);
  const own = new FileMark({ stateDirectory, authSite });
  const mirrored = shared && new MirroredMark({ own, shared, authSite, listener: logSharedMark(logger) });
  const mark = mirrored ?? own;
  const refreshMetrics = createRefreshMetrics(metrics.registry, () => refresher?.status().lastContactSeconds);
  const summaryMetrics = createSummaryMetrics(metrics.registry);
  const lastUsedMetrics = createLastUsedMetrics(metrics.registry);
  const loader = new BundleLoader({
    ...setup,
    persisted,
    mark,
    nowSeconds,
    listener: reporting(logBundleEvents(logger, metrics, refreshMetrics), observations),
    // The latch is on disk before a worker can use the bundle.
    raising: async (snapshot, raise) => {
      await observations.prepare?.(snapshot);
      await raise();
    },
    acceptSnapshot: (snapshot) =>
      (setup.replay.kind === 'memory' ? refuseUnlessSingleVerifier(snapshot) : undefined) ??
      refuseUnknownNonces(setup, snapshot),
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
  const poster =
    connection &&
    new SummaryPoster({
      post: (summary, signal) => connection.summarize(summary, signal),
      metrics: summaryMetrics,
    });
  const lastUsed =
    connection &&
    new LastUsedReporter({
      post: (uses, signal) => connection.reportLastUsed(uses, signal),
      isKnown: (keyId) => loader.snapshot?.keys.get(keyId)?.kind === 'derived_key',
      metrics: lastUsedMetrics,
    });
  const unknownKeys =
    connection &&
    new UnknownKeysReporter({ post: (keys, signal) => connection.reportUnknownKeys(keys, signal) });
  return {
    loader,
    refreshStatus: () => refresher?.status(),
    countDecision:
      connection &&
      ((decision) => {
        poster?.add(decision);
        lastUsed?.add(decision);
        unknownKeys?.add(decision);
      }),
    mergeReport:
      connection &&
      ((report) => {
        if (report.kind === 'counted') poster?.merge(report.summary);
        else if (report.kind === 'used') lastUsed?.merge(report.uses);
        else unknownKeys?.merge(report.keys);
      }),
    workers: refresher?.workers,
    async start() {
      await mirrored?.start();
      await loader.start();
      // One that cannot be read lets workers load nothing.
      refresher?.start(await own.position().catch(() => undefined));
      poster?.start();
      lastUsed?.start();
    },
    async close() {
      await Promise.all([poster?.close(), lastUsed?.close(), unknownKeys?.close()]);
      await refresher?.close();
      loader.close();
      await persisted?.close();
      await mirrored?.close();
      await shared?.close();
    },
  };
}

function reporting(
  listener: BundleListener,
  observations: FollowingObservations,
  primary?: PrimaryLink,
): BundleListener {
  const report = ({ head, revision }: Snapshot) => primary?.loaded({ revision, head });
  return {
    ...listener,
    loaded: (snapshot, change) => {
      observations.follow(snapshot);
      report(snapshot);
      listener.loaded?.(snapshot, change);
    },
    advanced: (snapshot, ...change) => {
      report(snapshot);
      listener.advanced?.(snapshot, ...change);
    },
  };
}

/** Reads the bundle directory and the primary's state directory, and follows only what the primary has accepted. */
function followPrimary(
  setup: BundleSetup,
  logger: Logger,
  metrics: VerifierMetrics,
  observations: FollowingObservations,
  primary: PrimaryLink | undefined,
): BundleLoading {
  const { stateDirectory } = setup;
  const refreshMetrics = createRefreshMetrics(metrics.registry, () => undefined);
  const loader = new BundleLoader({
    ...setup,
    mark: new PrimaryMark(setup),
    nowSeconds,
    listener: reporting(logBundleEvents(logger, metrics, refreshMetrics), observations, primary),
    raising: async (snapshot, raise) => {
      await raise();
      await observations.prepare?.(snapshot);
    },
  });
  const follower = setup.control && new StateFollower(stateDirectory, loader);
  const counts = setup.control && new WorkerCounts((report) => primary?.handOver(report));
  return {
    loader,
    refreshStatus: () => undefined,
    countDecision: counts && ((decision) => counts.add(decision)),
    mergeReport: undefined,
    workers: undefined,
    start: async () => {
      await Promise.all([loader.start(), follower?.start()]);
    },
    close: async () => {
      counts?.close();
      follower?.close();
      loader.close();
    },
  };
}

/** Loaded on demand: its HTTP client takes some MiB that a verifier without Control does not need. */
async function openConnection(
  setup: BundleSetup,
  observations: FollowingObservations,
  readStoreId: InstanceOptions['readStoreId'],
) {
  const { authSite, breakGlass, control, realtimeStalenessSeconds } = setup;
  if (control === undefined) return undefined;
  const { ControlConnection } = await import('../loading/refresh/control-connection.ts');
  const { Instance } = await import('../loading/refresh/instance.ts');
  const hasBreakGlass = breakGlass !== undefined;
  const settings = { authSite, realtimeStalenessSeconds, hasBreakGlass };
  const instance = new Instance({ version: packageVersion(), readStoreId, ...settings });
  return new ControlConnection({
    ...control,
    readEnforced: () => observations.enforced(),
    instance,
  });
}

async function openSharedMark(replay: ReplaySetup): Promise<SharedMark | undefined> {
  if (replay.kind === 'memory') return undefined;
  const { createRedisSharedMark } = await import('../redis/redis-shared-mark.ts');
  return createRedisSharedMark(replay);
}

function refuseUnknownNonces(
  { dpopNonces = 'single_verifier' }: BundleSetup,
  { needsDpopNonces, singleVerifier }: Snapshot,
): string | undefined {
  if (!needsDpopNonces || dpopNonces === 'any') return undefined;
  if (dpopNonces === 'single_verifier' && singleVerifier) return undefined;
  return 'a bundle with dpop_nonce needs --dpop-nonce-key-file, unless one process serves a site with single_verifier: true';
}

/** The store in memory does not know which proofs other verifiers consumed. */
function refuseUnlessSingleVerifier({ singleVerifier }: Snapshot): string | undefined {
  return singleVerifier ? undefined : 'a replay store in memory needs a bundle with single_verifier: true';
}
