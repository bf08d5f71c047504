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
} from '../../../enforcement/admin/server.ts';
import { removeStaleSocket } from '../../../enforcement/ext-authz-grpc/listener.ts';
import { usageError } from '../../../program/errors.ts';
import { parseHostAndPort } from '../../../program/listen-address.ts';
import type { CliContext } from '../../../program/output.ts';
import { stopped, untilStopped } from '../../../program/stop-signal.ts';
import { createLogger } from '../../../telemetry/logger.ts';
import { createVerifierMetrics } from '../../../telemetry/metrics.ts';
import { createReadinessMetrics } from '../../../telemetry/readiness-metrics.ts';
import { renderMetrics } from '../../../telemetry/render-metrics.ts';
import { createWorkerMetrics } from '../../../telemetry/worker-metrics.ts';
import { planAudit } from '../audit-plan.ts';
import { planExtAuthz } from '../ext-authz.ts';
import { assertReplaySetting, usesEmbeddedReplay } from '../open-replay-store.ts';
import { createVerifierBundle, type VerifierBundle } from '../verifier-bundle.ts';
import { listenFailure, parseExternalOrigin, readingOf } from '../verifier-process.ts';
import { bundleCheck, controlCheck, listenerCheck } from '../verifier-readiness.ts';
import type { VerifierSettings } from '../verifier-settings.ts';
import { mergeMetrics } from './merged-metrics.ts';
import { WorkerPool } from './worker-pool.ts';
import { mergeChecks } from './worker-readiness.ts';

/** Runs until SIGTERM or SIGINT; returns after all workers have answered their Checks in flight. */
export function runPrimary(settings: VerifierSettings, context: CliContext): Promise<void> {
  return untilStopped((stop) => leadWorkers(settings, context, stop));
}

async function leadWorkers(
  settings: VerifierSettings,
  { version }: CliContext,
  stop: AbortSignal,
): Promise<void> {
  const adminAddress = parseHostAndPort('admin-listen', settings.adminListen);
  const { relaysAudit } = await planWorkers(settings);
  const logger = createLogger(settings.logLevel);
  const realtimeStalenessSeconds = Math.floor(settings.realtimeStalenessMs / 1000);
  const metrics = createVerifierMetrics(() => readingOf(bundle.loader.snapshot, realtimeStalenessSeconds));
  metrics.registry.setDefaultLabels({ worker: 'primary' });
  const workerMetrics = createWorkerMetrics(metrics.registry, () => pool.runningCount());
  const bundle = await createVerifierBundle(settings, logger, metrics);
  const pool = new WorkerPool({
    size: settings.workers,
    logger,
    stdout: relaysAudit ? process.stdout : undefined,
    onRestart: () => workerMetrics.restarted(),
  });
  createReadinessMetrics(metrics.registry, () => [...primaryChecks(bundle), pool.check()]);
  const readiness = () => {
    const own = { process: 'primary', checks: [...primaryChecks(bundle), listenerCheck(stop.aborted)] };
    return [...mergeChecks([own, ...pool.states()]), pool.check()];
  };
  const scrape = async () => {
    const texts = [await renderMetrics(metrics.registry), ...(await pool.metrics())];
    return { contentType: metrics.registry.contentType, text: mergeMetrics(texts) };
  };
  const reopen = () => pool.signal('SIGHUP');
  await bundle.start();
  let admin: AdminListener | undefined;
  try {
    admin = await openAdminListener({ ...adminAddress, readiness, metrics: scrape }).catch(
      (error: unknown) => {
        throw listenFailure(error, settings.adminListen);
      },
    );
    process.on('SIGHUP', reopen);
    const listen = await Promise.race([pool.start(), stopped(stop)]);
    const { authSite, workers } = settings;
    if (listen !== undefined) {
      const admin_listen = admin.address;
      logger.info({ version, listen, admin_listen, auth_site: authSite, workers }, 'listening');
    }
    await stopped(stop);
    logger.info('draining');
    pool.leave();
    // Before any ext_authz server is open there are no clients to move to other verifiers, so there is no delay.
    if (pool.isAnyOpen()) await sleep(settings.drainDelayMs);
  } finally {
    await pool.stop(stop.aborted ? settings.drainTimeoutMs : 0);
    process.off('SIGHUP', reopen);
    await Promise.all([bundle.close(), admin?.close()]);
  }
  logger.info('stopped');
}

/** Checks of loading and refreshing, which only the primary does. */
function primaryChecks({ loader, refreshStatus }: VerifierBundle): readonly ReadinessCheck[] {
  const refresh = refreshStatus();
  return [bundleCheck(loader.status()), ...(refresh === undefined ? [] : [controlCheck(refresh)])];
}

/** Validates the settings once, before any worker starts. @throws CliError */
async function planWorkers(settings: VerifierSettings): Promise<{ readonly relaysAudit: boolean }> {
  if (usesEmbeddedReplay(settings.replay)) {
    throw usageError(
      'workers_need_redis',
      '--workers above 1 needs --replay redis://…: memory is for one process',
    );
  }
  await assertReplaySetting(settings);
  parseExternalOrigin(settings.externalOrigin);
  const extAuthz = await planExtAuthz(settings);
  if (extAuthz.listen.startsWith('unix:')) {
    await removeStaleSocket(extAuthz.listen.slice('unix:'.length)).catch((error: unknown) => {
      throw listenFailure(error, settings.listen);
    });
  }
  const { file, mode } = await planAudit(settings);
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
  return { relaysAudit: file === '-' };
}

function isFileOrNothing(file: string): Promise<boolean> {
  return stat(file).then(
    (stats) => stats.isFile(),
    () => true,
  );
}
