/**
 * Opens a verifier from typed options: loads its bundle, and opens its replay store, audit trail and metrics. Every
 * enforcement point that runs a verifier in its process starts here.
 */
import { randomBytes } from 'node:crypto';
import { isBreakGlassInForce } from '../../bundle/compile/break-glass-statement.ts';
import type { Snapshot } from '../../bundle/compile/snapshot.ts';
import { faultName } from '../../process/program/errors.ts';
import type { Logger } from '../../process/telemetry/log.ts';
import { createDpopNonces, DPOP_NONCE_KEY_BYTES } from '../../protocol/dpop-nonce.ts';
import type { Origin } from '../../protocol/request-target.ts';
import { staleGroups } from '../decision/steps/freshness.ts';
import type { BreakGlassStatus } from '../loading/break-glass-file.ts';
import type { BundleStatus } from '../loading/bundle-loader.ts';
import type { RefreshStatus } from '../loading/refresh/refresher.ts';
import {
  type AllowedObservations,
  type ObservationStatus,
  Observations,
} from '../observation/observations.ts';
import { PathKeeper, type PathKeeperOptions } from '../observation/path-keeper.ts';
import type { ReplayHealth } from '../replay/store.ts';
import { createVerifier, type Verifier } from '../verifier.ts';
import { createVerifierMetrics, type VerifierMetrics } from '../verifier-metrics.ts';
import { type AuditHealth, type AuditSetup, openAudit } from './open-audit.ts';
import { type BundleSetup, nowSeconds, openBundle, type PrimaryLink } from './open-bundle.ts';
import type { CaptureSetup } from './open-captures.ts';
import { openReplay } from './open-replay.ts';
import { lockState } from './state-lock.ts';

export interface VerifierSetup extends BundleSetup {
  readonly audit: AuditSetup;
  /** Undefined to capture no denied requests. */
  readonly capture: CaptureSetup | undefined;
  /** Maximum number of requests of one holder key in a minute. */
  readonly holderQuotaPerMinute: number;
  /** The same for all holder keys of one issuer and subject. */
  readonly subjectQuotaPerMinute: number;
  /** The only origin that this verifier serves, if a proxy before it rewrites host or scheme. */
  readonly externalOrigin: Origin | undefined;
  /** Maximum number of requests that wait for the replay store. */
  readonly maxInFlight: number;
  readonly allowedObservations: AllowedObservations;
  /** Undefined to keep no paths. */
  readonly observedPaths?: ObservedPathsSetup | undefined;
}

/** Where the shapes of unmatched paths are kept. */
export type ObservedPathsSetup = Pick<PathKeeperOptions, 'file' | 'kept'>;

export interface OpenVerifierInputs {
  readonly setup: VerifierSetup;
  readonly logger: Logger;
  /** Added to each metric. */
  readonly metricLabels?: { readonly [label: string]: string };
  /** Reports an internal error; the request has been denied. */
  readonly onInternalError: (error: unknown) => void;
  /** Of a worker. */
  readonly primary?: PrimaryLink | undefined;
}

export interface VerifierStatus {
  readonly bundle: BundleStatus;
  /** Undefined when no `--break-glass-file` is configured. */
  readonly breakGlass: BreakGlassStatus | undefined;
  /** Undefined when no Control is configured. */
  readonly refresh: RefreshStatus | undefined;
  readonly replay: ReplayHealth;
  readonly audit: AuditHealth;
  readonly observation: ObservationStatus;
  readonly realtimeStalenessSeconds: number;
}

export interface OpenVerifier {
  readonly verifier: Verifier;
  readonly metrics: VerifierMetrics;
  status(): VerifierStatus;
  /** Opens the audit file again, such as after its rotation. */
  reopenAudit(): void;
  /** Ends background work, after queued audit events are flushed. */
  close(): Promise<void>;
}

/**
 * Returns when the bundle that is available is loaded. Without one, and without Redis, the verifier denies and retries.
 * @throws AuditFileError; RedisSettingError for an invalid URL; CliError `state_dir_in_use`
 */
export async function openVerifier(inputs: OpenVerifierInputs): Promise<OpenVerifier> {
  const { logger, setup } = inputs;
  if (setup.isWorker) return openInState(inputs);
  const release = await lockState(setup.stateDirectory, logger);
  try {
    const opened = await openInState(inputs);
    return { ...opened, close: () => opened.close().finally(release) };
  } catch (error) {
    await release();
    throw error;
  }
}

/** Needs the lock of the state directory. */
async function openInState(inputs: OpenVerifierInputs): Promise<OpenVerifier> {
  const { logger, metricLabels = {}, onInternalError, setup } = inputs;
  const { realtimeStalenessSeconds } = setup;
  const metrics = createVerifierMetrics(() => readingOf(bundle.loader.snapshot, realtimeStalenessSeconds));
  metrics.registry.setDefaultLabels(metricLabels);
  const observations = await openObservations(setup, logger);
  const paths = setup.observedPaths && keepPaths(setup, setup.observedPaths, logger);
  const following = {
    enforced: () => observations.enforced(),
    ...(setup.isWorker && { prepare: (snapshot: Snapshot) => observations.prepare(snapshot) }),
    follow: (snapshot: Snapshot) => {
      observations.follow(snapshot);
      paths?.follow(snapshot);
    },
  };
  const bundle = await openBundle(setup, logger, metrics, following, inputs.primary);
  const closing = [() => bundle.close(), async () => paths?.close(), () => observations.close()];
  const close = async () => {
    await Promise.all(closing.map((part) => part()));
  };
  try {
    const audit = await openAudit(setup.audit, setup.isWorker, logger, metrics);
    closing.push(() => audit.sink.close());
    await bundle.start();
    await observations.settled();
    observations.watch();
    const { externalOrigin, maxInFlight, replay, stateDirectory } = setup;
    const { holderQuotaPerMinute, subjectQuotaPerMinute } = setup;
    const expectedSkewSeconds = () => bundle.loader.snapshot?.skewSeconds;
    const replayInputs = {
      stateDirectory,
      holderQuotaPerMinute,
      subjectQuotaPerMinute,
      expectedSkewSeconds,
    };
    const replayStore = await openReplay(replay, replayInputs, logger, metrics);
    closing.push(() => replayStore.close());
    const captures = setup.capture && (await openCapturesOf(setup, setup.capture, logger, metrics));
    closing.push(async () => captures?.close());
    const verifier = createVerifier({
      currentSnapshot: () => bundle.loader.snapshot,
      replayStore,
      auditSink: audit.sink,
      auditMode: setup.audit.mode,
      metrics,
      nowMs: Date.now,
      realtimeStalenessSeconds,
      externalOrigin,
      dpopNonces: createDpopNonces(
        setup.authSite,
        setup.dpopNonceKeys ?? [randomBytes(DPOP_NONCE_KEY_BYTES)],
      ),
      observations,
      onUnmatched: paths && ((method, target, nowMs) => paths.add(method, target, nowMs)),
      maxInFlight,
      onDecided: bundle.countDecision,
      onInternalError,
      onDenied: captures && ((denied) => captures.add(denied)),
    });
    const status = () => ({
      bundle: bundle.loader.status(),
      breakGlass: bundle.breakGlassStatus(),
      refresh: bundle.refreshStatus(),
      replay: replayStore.health(),
      audit: audit.health(),
      observation: observations.status(),
      realtimeStalenessSeconds,
    });
    return { verifier, metrics, status, reopenAudit: () => audit.sink.reopen(), close };
  } catch (error) {
    await close();
    throw error;
  }
}

export function openObservations(setup: VerifierSetup, logger: Logger): Promise<Observations> {
  return Observations.open({
    ...setup,
    allowed: setup.allowedObservations,
    nowSeconds,
    onLatchFailed: (error) =>
      logger.error(
        { fault: faultName(error) },
        'observations.json in --state-dir failed: no observation begins',
      ),
  });
}

async function openCapturesOf(
  { realtimeStalenessSeconds }: VerifierSetup,
  capture: CaptureSetup,
  logger: Logger,
  metrics: VerifierMetrics,
) {
  // Loaded on demand: a verifier without captures explains nothing.
  const { openCaptures } = await import('./open-captures.ts');
  return openCaptures(capture, realtimeStalenessSeconds, logger, metrics);
}

function keepPaths({ authSite }: VerifierSetup, paths: ObservedPathsSetup, logger: Logger): PathKeeper {
  const onFailed = (error: unknown) =>
    logger.warn({ fault: faultName(error) }, 'the file of --observe-paths-file cannot be written');
  return new PathKeeper({ ...paths, authSite, onFailed });
}

/** The values of a bundle in the metrics. */
export function readingOf(snapshot: Snapshot | undefined, realtimeStalenessSeconds: number) {
  if (snapshot === undefined) return undefined;
  const stale = staleGroups(snapshot, nowSeconds(), realtimeStalenessSeconds);
  const countOf = (kind: 'bounded' | 'realtime') =>
    stale.reduce((sum, { routeIds, rule }) => sum + (rule.kind === kind ? routeIds.length : 0), 0);
  return {
    revision: snapshot.revision,
    ageSeconds: nowSeconds() - snapshot.freshAsOfSeconds,
    isBreakGlass: isBreakGlassInForce(snapshot, nowSeconds()),
    staleRoutes: { bounded: countOf('bounded'), realtime: countOf('realtime') },
  };
}
