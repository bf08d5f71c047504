/** Composition root of the sidecar: puts the parts together, runs until it is asked to stop, takes them apart. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Snapshot } from '../../bundle/snapshot.ts';
import {
  type AdminListener,
  type AdminOptions,
  openAdminListener,
  type ReadinessCheck,
} from '../../enforcement/admin/server.ts';
import { ListenError } from '../../enforcement/ext-authz-grpc/server.ts';
import { type Origin, parseOrigin } from '../../protocol/request-target.ts';
import { createLogger, type Logger } from '../../telemetry/logger.ts';
import { createVerifierMetrics, type VerifierMetrics } from '../../telemetry/metrics.ts';
import { createReadinessMetrics } from '../../telemetry/readiness-metrics.ts';
import type { ReplayStore } from '../../verifier/replay/store.ts';
import { createVerifier, type Verifier } from '../../verifier/verifier.ts';
import type { CliContext } from '../define-command.ts';
import { CliError, systemErrorCode, usageError } from '../errors.ts';
import { type HostAndPort, parseHostAndPort } from '../listen-address.ts';
import { listenForStop } from '../stop-signal.ts';
import { openVerifierAudit, type VerifierAudit } from './audit.ts';
import { createVerifierBundle, type VerifierBundle } from './bundle.ts';
import { type DoorPlan, openDoor, planDoor, type VerifierDoor } from './door.ts';
import { releaseStartMemory, tuneGarbageCollection } from './garbage-collection.ts';
import { assertReplaySetting, openReplayStore } from './open-replay-store.ts';
import { verifierReadiness } from './readiness.ts';
import { reportReadiness } from './readiness-report.ts';
import { createReplayTelemetry } from './replay-telemetry.ts';
import type { VerifierSettings } from './settings.ts';

/** What is otherwise in one of several processes: see `workers/`. */
export interface ProcessRole {
  readonly createBundle: typeof createVerifierBundle;
  /** @param doorAddress where the door listens */
  readonly openAdmin: (options: AdminOptions, doorAddress: string) => Promise<AdminListener>;
  readonly logFields: { readonly [name: string]: string | number };
  /** The log line that says that it listens. */
  readonly tellStart: (logger: Logger, started: Started) => void;
}

interface Started {
  readonly version: string;
  readonly authSite: string;
  /** Where the door listens, and the admin listener. */
  readonly listen: string;
  readonly adminListen: string;
}

const ALONE: ProcessRole = {
  createBundle: createVerifierBundle,
  openAdmin: (options) => openAdminListener(options),
  logFields: {},
  tellStart: (logger, { adminListen, authSite, listen, version }) =>
    logger.info({ version, listen, admin_listen: adminListen, auth_site: authSite }, 'listening'),
};

/** Returns when SIGTERM or SIGINT has come and everything in flight has been answered. */
export async function runVerifier(
  settings: VerifierSettings,
  { version }: CliContext,
  role: ProcessRole = ALONE,
): Promise<void> {
  tuneGarbageCollection();
  const stop = listenForStop();
  const logger = createLogger(settings.logLevel).child(role.logFields);
  const parts = await startParts({ settings, logger, version, role });
  releaseStartMemory();
  try {
    const { admin, door } = parts;
    const { authSite } = settings;
    role.tellStart(logger, { version, authSite, listen: door.address, adminListen: admin.address });
    await stopped(stop);
    logger.info('draining');
    // Whoever asks for its health takes it out of what is asked; until then its answers are as good as ever.
    parts.leave();
    await sleep(settings.drainDelayMs);
  } finally {
    await stopParts(parts, settings.drainTimeoutMs);
  }
  logger.info('stopped');
}

interface Parts {
  readonly bundle: VerifierBundle;
  readonly replayStore: ReplayStore;
  readonly audit: VerifierAudit;
  readonly door: VerifierDoor;
  readonly admin: AdminListener;
  /** Ends what keeps health checks up to date, and tells them that this verifier is leaving. */
  readonly leave: () => void;
}

interface StartInputs {
  readonly settings: VerifierSettings;
  readonly logger: Logger;
  readonly version: string;
  readonly role: ProcessRole;
}

/** What can be wrong with the settings is told before anything is opened. */
async function startParts({ settings, logger, version, role }: StartInputs): Promise<Parts> {
  const adminAddress = parseHostAndPort('admin-listen', settings.adminListen);
  const doorPlan = await planDoor(settings);
  const externalOrigin = parseExternalOrigin(settings.externalOrigin);
  await assertReplaySetting(settings);
  const metrics = createVerifierMetrics(() => readingOf(bundle.holder.snapshot));
  const bundle = await role.createBundle(settings, logger, metrics);
  const audit = await openVerifierAudit(settings, metrics, logger).catch(async (error: unknown) => {
    await bundle.close();
    throw error;
  });
  await bundle.start();
  const replayStore = await openReplayStore(settings, {
    expectedSkewSeconds: () => bundle.holder.snapshot?.skewSeconds,
    observer: createReplayTelemetry(metrics, logger, () => replayStore.health()),
  });
  const realtimeStalenessSeconds = Math.floor(settings.realtimeStalenessMs / 1000);
  const verifier = createVerifier({
    currentSnapshot: () => bundle.holder.snapshot,
    replayStore,
    auditSink: audit.sink,
    auditMode: audit.mode,
    metrics,
    nowMs: Date.now,
    realtimeStalenessSeconds,
    externalOrigin,
    maxInFlight: settings.maxInFlight,
    onInternalError: (error) =>
      logger.error({ fault: faultName(error) }, 'internal fault: the request was denied'),
  });
  const readiness = (leaving: boolean) =>
    verifierReadiness({
      bundle: bundle.holder.status(),
      refresh: bundle.refreshStatus(),
      replay: replayStore.health(),
      audit: audit.health(),
      realtimeStalenessSeconds,
      leaving,
    });
  try {
    const listening = {
      settings,
      doorPlan,
      adminAddress,
      verifier,
      metrics,
      readiness,
      logger,
      version,
      role,
    };
    const opened = await openListeners(listening);
    return { bundle, replayStore, audit, ...opened };
  } catch (error) {
    await Promise.all([bundle.close(), replayStore.close(), audit.close()]);
    throw error;
  }
}

interface ListenerInputs {
  readonly settings: VerifierSettings;
  readonly doorPlan: DoorPlan;
  readonly adminAddress: HostAndPort;
  readonly verifier: Verifier;
  readonly metrics: VerifierMetrics;
  readonly readiness: (leaving: boolean) => readonly ReadinessCheck[];
  readonly logger: Logger;
  readonly version: string;
  readonly role: ProcessRole;
}

/** @throws CliError `listen_failed` */
async function openListeners(inputs: ListenerInputs): Promise<Pick<Parts, 'door' | 'admin' | 'leave'>> {
  const { adminAddress, doorPlan, logger, metrics, settings } = inputs;
  const door = await openDoor({
    ...inputs,
    plan: doorPlan,
    onInternalError: (error) =>
      logger.error({ fault: faultName(error) }, 'internal fault: the request was denied'),
  }).catch((error: unknown) => {
    throw listenFailure(error, settings.listen);
  });
  let leaving = false;
  const readiness = () => [...inputs.readiness(leaving), ...door.checks()];
  createReadinessMetrics(metrics.registry, readiness);
  const adminOptions = { ...adminAddress, readiness, metrics: () => scrape(metrics) };
  const admin = await inputs.role.openAdmin(adminOptions, door.address).catch(async (error: unknown) => {
    await door.drain(0);
    throw listenFailure(error, settings.adminListen);
  });
  const stopReporting = reportReadiness(readiness, door, logger);
  const leave = () => {
    leaving = true;
    stopReporting();
    door.setServing(false);
  };
  return { door, admin, leave };
}

async function stopParts(parts: Parts, drainTimeoutMs: number): Promise<void> {
  parts.leave();
  await parts.door.drain(drainTimeoutMs);
  const { admin, audit, bundle, replayStore } = parts;
  await Promise.all([bundle.close(), replayStore.close(), audit.close(), admin.close()]);
}

export function stopped(stop: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (stop.aborted) resolve();
    else stop.addEventListener('abort', () => resolve(), { once: true });
  });
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

/** Its class or system code; a message or a stack could hold what a request held. */
function faultName(error: unknown): string {
  return systemErrorCode(error) ?? (error instanceof Error ? error.name : typeof error);
}

function nowSeconds(): number {
  return Math.floor(Date.now() / 1000);
}

export function readingOf(snapshot: Snapshot | undefined) {
  if (snapshot === undefined) return undefined;
  return { revision: snapshot.revision, ageSeconds: nowSeconds() - snapshot.freshAsOfSeconds };
}

async function scrape({ registry }: VerifierMetrics) {
  return { contentType: registry.contentType, text: await registry.metrics() };
}
