/** Composition root of the verifier: opens it from its settings, serves ext_authz until shutdown, and closes it. */
import { setTimeout as sleep } from 'node:timers/promises';
import {
  type AdminListener,
  type AdminOptions,
  openAdminListener,
  type ReadinessCheck,
} from '../../enforcement/admin/admin-server.ts';
import { ListenError } from '../../enforcement/ext-authz-grpc/ext-authz-server.ts';
import { CliError, faultName, systemErrorCode, usageError } from '../../program/errors.ts';
import type { CliContext } from '../../program/output.ts';
import { stopped, untilStopped } from '../../program/stop-signal.ts';
import { releaseStartMemory, tuneGarbageCollection } from '../../runtime-internals/garbage-collection.ts';
import { renderMetrics } from '../../telemetry/instruments.ts';
import { createLogger, type Logger } from '../../telemetry/logger.ts';
import { createReadinessMetrics } from '../../telemetry/metrics.ts';
import { AuditFileError } from '../../verifier/assembly/open-audit.ts';
import {
  type OpenVerifier,
  type OpenVerifierInputs,
  openVerifier,
} from '../../verifier/assembly/open-verifier.ts';
import { openExtAuthz, type VerifierExtAuthz } from './ext-authz.ts';
import { reportReadiness } from './readiness-report.ts';
import { planVerifier, type VerifierPlan } from './verifier-plan.ts';
import { verifierReadiness } from './verifier-readiness.ts';
import type { VerifierSettings } from './verifier-settings.ts';

/**
 * Graceful shutdown of a verifier. Health turns NOT_SERVING at once; Checks are answered during the drain delay, while
 * clients move to other verifiers; then the ext_authz server closes. Source: docs/enforcement.md "Start and stop".
 */

export interface Shutdown {
  /** Aborts when shutdown begins: health is NOT_SERVING from then on. */
  readonly begun: AbortSignal;
  /** Whether a verifier that is still starting must not open its ext_authz server. */
  isBeforeOpening(): boolean;
  /** Resolves when the ext_authz server must close. */
  untilClosing(): Promise<void>;
}

/** Shutdown on a signal, with a drain delay. A signal during startup skips the delay: no client is connected yet. */
export function shutdownBySignal(stop: AbortSignal, delayMs: number): Shutdown {
  return {
    begun: stop,
    isBeforeOpening: () => stop.aborted,
    untilClosing: async () => {
      await stopped(stop);
      await sleep(delayMs);
    },
  };
}

/** What differs between a single verifier process and one of several workers: see `workers/`. */
export interface ProcessRole {
  /** Number of this worker; undefined in a single process. */
  readonly worker: string | undefined;
  /** Runs a verifier until the shutdown that it passes to `run`. */
  readonly runUntilShutdown: (
    settings: VerifierSettings,
    run: (shutdown: Shutdown) => Promise<void>,
  ) => Promise<void>;
  /** @param extAuthzAddress where the ext_authz server listens */
  readonly openAdmin: (options: AdminOptions, extAuthzAddress: string) => Promise<AdminListener>;
  /** Writes the "listening" log line. */
  readonly logStart: (logger: Logger, started: Started) => void;
}

interface Started {
  readonly version: string;
  readonly authSite: string;
  /** Addresses of the ext_authz server and of the admin listener. */
  readonly listen: string;
  readonly adminListen: string;
}

const SINGLE_PROCESS: ProcessRole = {
  worker: undefined,
  runUntilShutdown: ({ drainDelayMs }, run) =>
    untilStopped((stop) => run(shutdownBySignal(stop, drainDelayMs))),
  openAdmin: (options) => openAdminListener(options),
  logStart: (logger, { adminListen, authSite, listen, version }) =>
    logger.info({ version, listen, admin_listen: adminListen, auth_site: authSite }, 'listening'),
};

/** Runs until SIGTERM or SIGINT; returns after Checks in flight are answered. */
export function runVerifier(
  settings: VerifierSettings,
  { version }: CliContext,
  role: ProcessRole = SINGLE_PROCESS,
): Promise<void> {
  return role.runUntilShutdown(settings, (shutdown) => serve({ settings, version, role, shutdown }));
}

interface ServeInputs {
  readonly settings: VerifierSettings;
  readonly version: string;
  readonly role: ProcessRole;
  readonly shutdown: Shutdown;
}

/** All parts except the listeners. */
interface Parts extends ServeInputs, OpenVerifier {
  readonly plan: VerifierPlan;
  readonly logger: Logger;
  readonly onInternalError: (error: unknown) => void;
}

/** Validates the settings before it opens anything. */
async function serve(inputs: ServeInputs): Promise<void> {
  tuneGarbageCollection();
  const { role, settings, shutdown } = inputs;
  const { worker } = role;
  const logger = createLogger(settings.logLevel).child(
    worker === undefined ? {} : { worker: Number(worker) },
  );
  const hangUp = reopenOnHangUp(logger);
  const plan = await planVerifier(settings, worker !== undefined);
  const onInternalError = (error: unknown) =>
    logger.error({ fault: faultName(error) }, 'internal fault: the request was denied');
  const metricLabels = worker === undefined ? {} : { worker };
  const opened = await openOrExplain({ setup: plan.setup, logger, metricLabels, onInternalError });
  try {
    hangUp.start(opened.reopenAudit);
    if (!shutdown.isBeforeOpening()) await keepOpen({ ...inputs, ...opened, plan, logger, onInternalError });
  } finally {
    hangUp.stop();
    await opened.close();
  }
  logger.info('stopped');
}

/**
 * Reopens the audit file on SIGHUP. The handler stays until the process ends, because the signal would end a process without
 * one. A signal during startup reopens the file once it is open; a signal during shutdown does nothing.
 */
function reopenOnHangUp(logger: Logger) {
  let reopen: (() => void) | undefined;
  let isDue = false;
  const handle = () => {
    isDue = reopen === undefined;
    if (reopen === undefined) return;
    logger.info('audit file reopened by signal');
    reopen();
  };
  process.on('SIGHUP', handle);
  return {
    start(reopenAudit: () => void): void {
      reopen = reopenAudit;
      if (isDue) handle();
    },
    stop(): void {
      reopen = undefined;
    },
  };
}

/** @throws CliError `audit_file_unusable` */
async function openOrExplain(inputs: OpenVerifierInputs): Promise<OpenVerifier> {
  try {
    return await openVerifier(inputs);
  } catch (error) {
    throw error instanceof AuditFileError ? usageError('audit_file_unusable', error.message) : error;
  }
}

/** Opens the listeners, waits for shutdown, and closes them after Checks in flight are answered. */
async function keepOpen(parts: Parts): Promise<void> {
  const { logger, role, settings, shutdown, version } = parts;
  const { admin, close, extAuthz } = await openListeners(parts);
  try {
    if (shutdown.isBeforeOpening()) return;
    const { authSite } = settings;
    role.logStart(logger, { version, authSite, listen: extAuthz.address, adminListen: admin.address });
    await stopped(shutdown.begun);
    logger.info('draining');
    // Health checks now remove this verifier from load balancing; until then it answers Checks as before.
    await shutdown.untilClosing();
  } finally {
    await close();
  }
}

interface Listeners {
  readonly extAuthz: VerifierExtAuthz;
  readonly admin: AdminListener;
  /** Answers Checks in flight, at most for the drain timeout. */
  readonly close: () => Promise<void>;
}

/** @throws CliError `listen_failed` */
async function openListeners(parts: Parts): Promise<Listeners> {
  const { logger, metrics, plan, role, settings, shutdown } = parts;
  const { begun } = shutdown;
  const extAuthz = await openExtAuthz({
    ...parts,
    plan: plan.extAuthz,
    // The collection blocks the process, and before listening no Check or health check waits for it.
    beforeListening: releaseStartMemory,
  }).catch((error: unknown) => {
    throw listenFailure(error, settings.listen);
  });
  const readiness = (leaving: boolean): readonly ReadinessCheck[] => [
    ...verifierReadiness({ ...parts.status(), leaving }),
    ...extAuthz.checks(),
  ];
  createReadinessMetrics(metrics.registry, () => readiness(begun.aborted));
  const { registry } = metrics;
  const adminOptions = {
    ...plan.admin,
    readiness: () => readiness(begun.aborted),
    metrics: async () => ({ contentType: registry.contentType, text: await renderMetrics(registry) }),
  };
  const admin = await role.openAdmin(adminOptions, extAuthz.address).catch(async (error: unknown) => {
    await extAuthz.drain(0);
    throw listenFailure(error, settings.adminListen);
  });
  // `false`: the "draining" line already logs the shutdown.
  const stopReporting = reportReadiness({
    readiness: () => readiness(false),
    extAuthz,
    logger,
    leaving: begun,
  });
  const close = async () => {
    stopReporting();
    extAuthz.setServing(false);
    await extAuthz.drain(settings.drainTimeoutMs);
    await admin.close();
  };
  return { extAuthz, admin, close };
}

export function listenFailure(error: unknown, address: string): CliError {
  if (error instanceof CliError) return error;
  const why = error instanceof ListenError ? error.message : (systemErrorCode(error) ?? 'error');
  return usageError('listen_failed', `cannot listen on ${address}: ${why}`);
}
