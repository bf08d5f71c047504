/**
 * The primary of several verifier processes behind one address. It owns the state directory, follows Control and serves the
 * admin listener for all, and decides nothing. Each worker is a complete verifier that uses the same Redis.
 */

import { stat } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  type AdminListener,
  openAdminListener,
  type ReadinessCheck,
} from '../../../../process/admin/admin-server.ts';
import { createReadinessMetrics } from '../../../../process/admin/readiness-metrics.ts';
import { removeStaleSocket } from '../../../../process/connections/connection-listener.ts';
import { listenFailure } from '../../../../process/connections/listen-failure.ts';
import { usageError } from '../../../../process/program/errors.ts';
import type { CliContext } from '../../../../process/program/output.ts';
import { stopped, untilStopped } from '../../../../process/program/stop-signal.ts';
import { renderMetrics } from '../../../../process/telemetry/instruments.ts';
import { createLogger, type Logger } from '../../../../process/telemetry/logger.ts';
import { type OpenBundle, openBundle } from '../../../../verifier/assembly/open-bundle.ts';
import { openObservations, readingOf } from '../../../../verifier/assembly/open-verifier.ts';
import { lockState } from '../../../../verifier/assembly/state-lock.ts';
import {
  bundleCheck,
  controlCheck,
  listenerCheck,
  observationChecks,
} from '../../../../verifier/assembly/verifier-readiness.ts';
import type { Observations } from '../../../../verifier/observation/observations.ts';
import { createVerifierMetrics, createWorkerMetrics } from '../../../../verifier/verifier-metrics.ts';
import { type EnforcementPlan, planEnforcement } from '../../enforcement-plan.ts';
import { planVerifierServers } from '../verifier-process.ts';
import type { VerifierSettings } from '../verifier-settings.ts';
import { mergeChecks, mergeMetrics } from './merged-reports.ts';
import { WorkerPool } from './worker-pool.ts';

/** Runs until SIGTERM or SIGINT; returns after all workers have answered their Checks in flight. */
export function runPrimary(settings: VerifierSettings, context: CliContext): Promise<void> {
  return untilStopped((stop) => leadWorkers(settings, context, stop));
}

async function leadWorkers(
  settings: VerifierSettings,
  context: CliContext,
  stop: AbortSignal,
): Promise<void> {
  const plan = await planWorkers(settings);
  const logger = createLogger(settings.logLevel);
  const release = await lockState(plan.setup.stateDirectory, logger);
  await lead(settings, plan, { context, logger, stop }).finally(release);
}

interface Leading {
  readonly context: CliContext;
  readonly logger: Logger;
  readonly stop: AbortSignal;
}

/** Needs the lock of the state directory. */
async function lead(
  settings: VerifierSettings,
  { admin: adminAddress, setup }: EnforcementPlan,
  { context: { version }, logger, stop }: Leading,
): Promise<void> {
  const { realtimeStalenessSeconds } = setup;
  const metrics = createVerifierMetrics(() => readingOf(bundle.loader.snapshot, realtimeStalenessSeconds));
  metrics.registry.setDefaultLabels({ worker: 'primary' });
  const workerMetrics = createWorkerMetrics(metrics.registry, () => pool.runningCount());
  const observations = await openObservations(setup, logger);
  const bundle = await openBundle(setup, logger, metrics, observations);
  const pool = new WorkerPool({
    size: settings.workers,
    logger,
    stdout: setup.audit.file === '-' ? process.stdout : undefined,
    onRestart: () => workerMetrics.restarted(),
    onReport: bundle.mergeReport,
    positions: bundle.workers,
  });
  const ownChecks = () => primaryChecks(bundle, observations);
  createReadinessMetrics(metrics.registry, () => [...ownChecks(), pool.check()]);
  const readiness = () => {
    const own = { process: 'primary', checks: [...ownChecks(), listenerCheck(stop.aborted)] };
    return [...mergeChecks([own, ...pool.states()]), pool.check()];
  };
  const scrape = async () => {
    const texts = [await renderMetrics(metrics.registry), ...(await pool.metrics())];
    return { contentType: metrics.registry.contentType, text: mergeMetrics(texts) };
  };
  const reopen = () => pool.signal('SIGHUP');
  await bundle.start();
  observations.watch();
  let admin: AdminListener | undefined;
  try {
    admin = await openAdminListener({ ...adminAddress, readiness, metrics: scrape }).catch(
      (error: unknown) => {
        throw listenFailure(error, settings.adminListen);
      },
    );
    process.on('SIGHUP', reopen);
    const listen = await Promise.race([pool.start(), stopped(stop)]);
    const { authSite, httpListen: http_listen, workers } = settings;
    if (listen !== undefined) {
      const admin_listen = admin.address;
      logger.info({ version, listen, http_listen, admin_listen, auth_site: authSite, workers }, 'listening');
    }
    await stopped(stop);
    logger.info('draining');
    pool.leave();
    // Before any ext_authz server is open there are no clients to move to other verifiers, so there is no delay.
    if (pool.isAnyOpen()) await sleep(settings.drainDelayMs);
  } finally {
    await pool.stop(stop.aborted ? settings.drainTimeoutMs : 0);
    process.off('SIGHUP', reopen);
    await Promise.all([bundle.close(), observations.close(), admin?.close()]);
  }
  logger.info('stopped');
}

/** Checks of loading, refreshing and the latch, which only the primary does. */
function primaryChecks(
  { loader, refreshStatus }: OpenBundle,
  observations: Observations,
): readonly ReadinessCheck[] {
  const refresh = refreshStatus();
  return [
    bundleCheck(loader.status()),
    ...(refresh === undefined ? [] : [controlCheck(refresh)]),
    ...observationChecks(observations.status()),
  ];
}

/** Validates the settings once, before any worker starts. @throws CliError */
async function planWorkers(settings: VerifierSettings): Promise<EnforcementPlan> {
  if (settings.replay === 'memory') {
    throw usageError(
      'workers_need_redis',
      '--workers above 1 needs --replay redis://…: memory is for one process',
    );
  }
  if (settings.observePathsFile !== undefined) {
    throw usageError(
      'observe_with_workers',
      '--observe-paths-file needs --workers 1: one process writes the file',
    );
  }
  const servers = await planVerifierServers(settings);
  const plan = await planEnforcement(settings, false);
  for (const { listen } of servers) {
    if (!listen.startsWith('unix:')) continue;
    await removeStaleSocket(listen.slice('unix:'.length)).catch((error: unknown) => {
      throw listenFailure(error, listen);
    });
  }
  const { file, mode } = plan.setup.audit;
  if (file === '-' && mode === 'required') {
    const text =
      '--audit required with --workers above 1 needs --audit-file: what the primary passes on is not recorded yet';
    throw usageError('workers_need_audit_file', text);
  }
  if (file !== undefined && file !== '-' && !(await isFileOrNothing(file))) {
    throw usageError(
      'workers_need_audit_file',
      `--audit-file ${file} is no regular file: workers would mix their lines`,
    );
  }
  // Each worker would have a random key of its own.
  const dpopNonces = plan.setup.dpopNonceKeys === undefined ? 'none' : 'any';
  return { ...plan, setup: { ...plan.setup, dpopNonces } };
}

function isFileOrNothing(file: string): Promise<boolean> {
  return stat(file).then(
    (stats) => stats.isFile(),
    () => true,
  );
}
