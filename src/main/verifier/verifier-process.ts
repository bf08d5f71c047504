/** Composition root of the verifier: opens its parts, serves until shutdown, and closes them. */
import type { Snapshot } from '../../bundle/compile/snapshot.ts';
import {
  type AdminListener,
  type AdminOptions,
  openAdminListener,
  type ReadinessCheck,
} from '../../enforcement/admin/server.ts';
import { ListenError } from '../../enforcement/ext-authz-grpc/server.ts';
import { CliError, systemErrorCode, usageError } from '../../program/errors.ts';
import { type HostAndPort, parseHostAndPort } from '../../program/listen-address.ts';
import type { CliContext } from '../../program/output.ts';
import { stopped, untilStopped } from '../../program/stop-signal.ts';
import { type Origin, parseOrigin } from '../../protocol/request-target.ts';
import { releaseStartMemory, tuneGarbageCollection } from '../../runtime-internals/garbage-collection.ts';
import { createLogger, type Logger } from '../../telemetry/logger.ts';
import { createVerifierMetrics, type VerifierMetrics } from '../../telemetry/metrics.ts';
import { createReadinessMetrics } from '../../telemetry/readiness-metrics.ts';
import { renderMetrics } from '../../telemetry/render-metrics.ts';
import { staleGroups } from '../../verifier/decision/steps/freshness.ts';
import type { ReplayStore } from '../../verifier/replay/store.ts';
import { createVerifier, type Verifier } from '../../verifier/verifier.ts';
import { type ExtAuthzPlan, openExtAuthz, planExtAuthz, type VerifierExtAuthz } from './ext-authz.ts';
import { type Departure, departBySignal } from './graceful-shutdown.ts';
import { assertReplaySetting, openReplayStore } from './open-replay-store.ts';
import { reportReadiness } from './readiness-report.ts';
import { createReplayTelemetry } from './replay-telemetry.ts';
import { openVerifierAudit, type VerifierAudit } from './verifier-audit.ts';
import { createVerifierBundle, type VerifierBundle } from './verifier-bundle.ts';
import { verifierReadiness } from './verifier-readiness.ts';
import type { VerifierSettings } from './verifier-settings.ts';

/** What differs between a single verifier process and one of several workers: see `workers/`. */
export interface ProcessRole {
  /** Runs a verifier until the shutdown that it passes to `run`. */
  readonly untilAsked: (
    settings: VerifierSettings,
    run: (departure: Departure) => Promise<void>,
  ) => Promise<void>;
  readonly createBundle: typeof createVerifierBundle;
  /** @param extAuthzAddress where the ext_authz server listens */
  readonly openAdmin: (options: AdminOptions, extAuthzAddress: string) => Promise<AdminListener>;
  readonly logFields: { readonly [name: string]: string | number };
  /** Writes the "listening" log line. */
  readonly tellStart: (logger: Logger, started: Started) => void;
}

interface Started {
  readonly version: string;
  readonly authSite: string;
  /** Addresses of the ext_authz server and of the admin listener. */
  readonly listen: string;
  readonly adminListen: string;
}

const ALONE: ProcessRole = {
  untilAsked: ({ drainDelayMs }, run) => untilStopped((stop) => run(departBySignal(stop, drainDelayMs))),
  createBundle: createVerifierBundle,
  openAdmin: (options) => openAdminListener(options),
  logFields: {},
  tellStart: (logger, { adminListen, authSite, listen, version }) =>
    logger.info({ version, listen, admin_listen: adminListen, auth_site: authSite }, 'listening'),
};

/** Runs until SIGTERM or SIGINT; returns after Checks in flight are answered. */
export function runVerifier(
  settings: VerifierSettings,
  context: CliContext,
  role: ProcessRole = ALONE,
): Promise<void> {
  return role.untilAsked(settings, (departure) => serve({ settings, context, role, departure }));
}

interface ServeInputs {
  readonly settings: VerifierSettings;
  readonly context: CliContext;
  readonly role: ProcessRole;
  readonly departure: Departure;
}

async function serve({ context, departure, role, settings }: ServeInputs): Promise<void> {
  tuneGarbageCollection();
  const logger = createLogger(settings.logLevel).child(role.logFields);
  const { version } = context;
  const parts = await startParts({ settings, logger, version, role, departure });
  try {
    if (!departure.isCalledOff()) await keepOpen(parts);
  } finally {
    const { audit, bundle, replayStore } = parts;
    await Promise.all([bundle.close(), replayStore.close(), audit.close()]);
  }
  logger.info('stopped');
}

/** Opens the listeners, waits for shutdown, and closes them after Checks in flight are answered. */
async function keepOpen(parts: Parts): Promise<void> {
  const { departure, logger, role, settings, version } = parts;
  const { admin, close, extAuthz } = await openListeners(parts);
  try {
    if (departure.isCalledOff()) return;
    const { authSite } = settings;
    role.tellStart(logger, { version, authSite, listen: extAuthz.address, adminListen: admin.address });
    await stopped(departure.leaving);
    logger.info('draining');
    // Health checks now remove this verifier from load balancing; until then it answers Checks as before.
    await departure.untilClosing();
  } finally {
    await close();
  }
}

interface StartInputs {
  readonly settings: VerifierSettings;
  readonly logger: Logger;
  readonly version: string;
  readonly role: ProcessRole;
  readonly departure: Departure;
}

/** All parts except the listeners. */
interface Parts extends StartInputs {
  readonly extAuthzPlan: ExtAuthzPlan;
  readonly adminAddress: HostAndPort;
  readonly metrics: VerifierMetrics;
  readonly bundle: VerifierBundle;
  readonly replayStore: ReplayStore;
  readonly audit: VerifierAudit;
  readonly verifier: Verifier;
  readonly readiness: (leaving: boolean) => readonly ReadinessCheck[];
}

/** Validates the settings before it opens anything. */
async function startParts(inputs: StartInputs): Promise<Parts> {
  const { logger, role, settings } = inputs;
  const adminAddress = parseHostAndPort('admin-listen', settings.adminListen);
  const extAuthzPlan = await planExtAuthz(settings);
  const externalOrigin = parseExternalOrigin(settings.externalOrigin);
  await assertReplaySetting(settings);
  const realtimeStalenessSeconds = Math.floor(settings.realtimeStalenessMs / 1000);
  const metrics = createVerifierMetrics(() => readingOf(bundle.loader.snapshot, realtimeStalenessSeconds));
  const bundle = await role.createBundle(settings, logger, metrics);
  const audit = await openVerifierAudit(settings, metrics, logger).catch(async (error: unknown) => {
    await bundle.close();
    throw error;
  });
  await bundle.start();
  const replayStore = await openReplayStore(settings, {
    expectedSkewSeconds: () => bundle.loader.snapshot?.skewSeconds,
    observer: createReplayTelemetry(metrics, logger, () => replayStore.health()),
  });
  const verifier = createVerifier({
    currentSnapshot: () => bundle.loader.snapshot,
    replayStore,
    auditSink: audit.sink,
    auditMode: audit.mode,
    metrics,
    nowMs: Date.now,
    realtimeStalenessSeconds,
    externalOrigin,
    maxInFlight: settings.maxInFlight,
    onInternalError: internalErrorLog(logger),
  });
  const readiness = (leaving: boolean) =>
    verifierReadiness({
      bundle: bundle.loader.status(),
      refresh: bundle.refreshStatus(),
      replay: replayStore.health(),
      audit: audit.health(),
      realtimeStalenessSeconds,
      leaving,
    });
  return { ...inputs, extAuthzPlan, adminAddress, metrics, bundle, replayStore, audit, verifier, readiness };
}

interface Listeners {
  readonly extAuthz: VerifierExtAuthz;
  readonly admin: AdminListener;
  /** Answers Checks in flight, at most for the drain timeout. */
  readonly close: () => Promise<void>;
}

/** @throws CliError `listen_failed` */
async function openListeners(parts: Parts): Promise<Listeners> {
  const { adminAddress, departure, extAuthzPlan, logger, metrics, role, settings } = parts;
  const { leaving } = departure;
  const extAuthz = await openExtAuthz({
    ...parts,
    plan: extAuthzPlan,
    // The collection blocks the process, and before listening no Check or health check waits for it.
    beforeListening: releaseStartMemory,
    onInternalError: internalErrorLog(logger),
  }).catch((error: unknown) => {
    throw listenFailure(error, settings.listen);
  });
  const readiness = (isLeaving: boolean) => [...parts.readiness(isLeaving), ...extAuthz.checks()];
  createReadinessMetrics(metrics.registry, () => readiness(leaving.aborted));
  const adminOptions = {
    ...adminAddress,
    readiness: () => readiness(leaving.aborted),
    metrics: () => scrape(metrics),
  };
  const admin = await role.openAdmin(adminOptions, extAuthz.address).catch(async (error: unknown) => {
    await extAuthz.drain(0);
    throw listenFailure(error, settings.adminListen);
  });
  // `false`: the "draining" line already logs the shutdown.
  const stopReporting = reportReadiness({ readiness: () => readiness(false), extAuthz, logger, leaving });
  const close = async () => {
    stopReporting();
    extAuthz.setServing(false);
    await extAuthz.drain(settings.drainTimeoutMs);
    await admin.close();
  };
  return { extAuthz, admin, close };
}

function internalErrorLog(logger: Logger): (error: unknown) => void {
  return (error) => logger.error({ fault: faultName(error) }, 'internal fault: the request was denied');
}

export function parseExternalOrigin(text: string | undefined): Origin | undefined {
  if (text === undefined) return undefined;
  const origin = parseOrigin(text);
  if (origin === undefined) {
    throw usageError(
      'bad_origin',
      '--external-origin must be scheme://host[:port] in lower case, such as https://api.example',
    );
  }
  return origin;
}

export function listenFailure(error: unknown, address: string): CliError {
  if (error instanceof CliError) return error;
  const why = error instanceof ListenError ? error.message : (systemErrorCode(error) ?? 'error');
  return usageError('listen_failed', `cannot listen on ${address}: ${why}`);
}

/** The system code or class name of an error. A message or stack trace could contain request data. */
function faultName(error: unknown): string {
  return systemErrorCode(error) ?? (error instanceof Error ? error.name : typeof error);
}

function nowSeconds(): number {
  return Math.floor(Date.now() / 1000);
}

export function readingOf(snapshot: Snapshot | undefined, realtimeStalenessSeconds: number) {
  if (snapshot === undefined) return undefined;
  const stale = staleGroups(snapshot, nowSeconds(), realtimeStalenessSeconds);
  const countOf = (kind: 'bounded' | 'realtime') =>
    stale.reduce((sum, { routeIds, rule }) => sum + (rule.kind === kind ? routeIds.length : 0), 0);
  return {
    revision: snapshot.revision,
    ageSeconds: nowSeconds() - snapshot.freshAsOfSeconds,
    staleRoutes: { bounded: countOf('bounded'), realtime: countOf('realtime') },
  };
}

async function scrape({ registry }: VerifierMetrics) {
  return { contentType: registry.contentType, text: await renderMetrics(registry) };
}
