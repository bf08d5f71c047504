/** Composition root of Control: opens its parts, serves until a stop signal, and closes the parts in reverse order. */
import { fileURLToPath } from 'node:url';
import { openAdminListener } from '../../process/admin/admin-server.ts';
import { Closers } from '../../process/program/closers.ts';
import { faultName, systemErrorCode, usageError } from '../../process/program/errors.ts';
import type { CliContext } from '../../process/program/output.ts';
import { stopped, untilStopped } from '../../process/program/stop-signal.ts';
import type { HostAndPort } from '../../process/settings/listen-address.ts';
import { createLogger, type Logger } from '../../process/telemetry/logger.ts';
import { createControlMetrics } from './control-metrics.ts';
import { type ControlParts, openControlParts } from './control-parts.ts';
import { type ControlPlan, planControl } from './control-plan.ts';
import { readOAuthKeys, readPropagation, readRenewals, watchReadiness } from './control-readiness.ts';
import type { ControlPartsOptions } from './control-reports.ts';
import type { ControlSettings } from './control-settings.ts';
import { followCertificate } from './control-tls.ts';
import { openBootstrapToken, openControlStore, openMasterKeys } from './open-store.ts';

export interface RunningControl {
  /** The first public URL. */
  readonly publicUrl: string;
  /** `HOST:PORT` with the real port. */
  readonly address: string;
  readonly adminAddress: string;
  /** Ends long-polls, completes requests in flight, stops the jobs, closes the database. */
  stop(): Promise<void>;
}

export interface ControlEnvironment {
  readonly logger: Logger;
  /** The built console. Default: Control serves none. */
  readonly consoleDirectory?: string;
  readonly nowMs?: () => number;
}

/** Beside this program's folder in `dist/`. */
const CONSOLE_DIRECTORY = fileURLToPath(new URL('../../console', import.meta.url));

/** Runs until SIGTERM or SIGINT; returns after requests in flight are answered. */
export function runControl(settings: ControlSettings, context: CliContext): Promise<void> {
  return untilStopped((stop) => serveUntil(stop, settings, context));
}

async function serveUntil(
  stop: AbortSignal,
  settings: ControlSettings,
  { version }: CliContext,
): Promise<void> {
  const logger = createLogger(settings.logLevel);
  const control = await startControl(settings, { logger, consoleDirectory: CONSOLE_DIRECTORY });
  const { address, adminAddress, publicUrl } = control;
  logger.info(
    { event: 'listening', version, listen: address, admin_listen: adminAddress, public_url: publicUrl },
    'listening',
  );
  await stopped(stop);
  logger.info({ event: 'draining' }, 'draining');
  await control.stop();
  logger.info({ event: 'stopped' }, 'stopped');
}

/**
 * Validates the settings before it opens anything.
 * @throws CliError
 */
export async function startControl(
  settings: ControlSettings,
  { logger, nowMs = Date.now, consoleDirectory }: ControlEnvironment,
): Promise<RunningControl> {
  const plan = await planControl(settings);
  const opened = new Closers(logger);
  try {
    return await openControl({ plan, settings, logger, nowMs, consoleDirectory, opened });
  } catch (error) {
    await opened.closeAll();
    throw error;
  }
}

interface Opening {
  readonly plan: ControlPlan;
  readonly settings: ControlSettings;
  readonly logger: Logger;
  readonly nowMs: () => number;
  readonly consoleDirectory: string | undefined;
  /** Closes what has been opened so far. */
  readonly opened: Closers;
}

async function openControl(opening: Opening): Promise<RunningControl> {
  const { plan, settings, logger, nowMs, opened } = opening;
  // When the database does not answer, only these metrics are left out of the scrape.
  const metrics = createControlMetrics({
    propagation: () => readPropagation(store, nowMs).catch(() => []),
    renewals: () => readRenewals(store, nowMs).catch(() => []),
    oauthKeys: () => readOAuthKeys(store, nowMs).catch(() => []),
  });
  const store = await openControlStore(plan, nowMs, ({ kind, name, error }) => {
    metrics.storeIncident(kind);
    logger.warn({ event: 'store_incident', kind, name, fault: faultName(error) }, 'store incident');
  });
  opened.add(() => store.close());
  const masterKeys = await openMasterKeys(store, plan);
  await openBootstrapToken(store, plan, settings.resetBootstrapToken, logger);
  const readiness = await watchReadiness(store);
  opened.add(async () => readiness.stop());
  const foundations = { ...opening, store, masterKeys, metrics, readiness };
  const parts = await openControlParts(foundations);
  opened.add(() => parts.close());
  const addresses = await openListeners(opening, parts, foundations);
  parts.startJobs();
  const stop = async () => {
    readiness.leave();
    await opened.closeAll();
  };
  return { publicUrl: plan.publicUrls[0], ...addresses, stop };
}

/** @throws CliError `listen_failed` */
async function openListeners(
  { plan, settings, logger, opened }: Opening,
  parts: ControlParts,
  { metrics: { registry }, readiness }: Pick<ControlPartsOptions, 'metrics' | 'readiness'>,
): Promise<Pick<RunningControl, 'address' | 'adminAddress'>> {
  const admin = await openAdminListener({
    ...plan.adminListen,
    readiness: () => readiness.checks(),
    metrics: async () => ({ contentType: registry.contentType, text: await registry.metrics() }),
  }).catch((error: unknown) => {
    throw listenFailure(error, settings.adminListen);
  });
  opened.add(() => admin.close());
  const address = await listen(parts, plan.listen, settings.listen);
  opened.add(() => parts.drain(settings.drainTimeoutMs));
  if (plan.tls !== undefined) {
    const unfollow = followCertificate(parts.app.server, plan.tls, plan.tls.material, logger);
    opened.add(async () => unfollow());
  }
  return { address, adminAddress: admin.address };
}

/** @throws CliError `listen_failed` */
async function listen({ app }: ControlParts, { host, port }: HostAndPort, shown: string): Promise<string> {
  try {
    // Fastify's default line says http:// for TLS too, because Fastify does not know that the server uses TLS.
    const listenTextResolver = (url: string) => `bound ${new URL(url).host}`;
    return new URL(await app.listen({ host, port, listenTextResolver })).host;
  } catch (error) {
    throw listenFailure(error, shown);
  }
}

function listenFailure(error: unknown, address: string): unknown {
  const code = systemErrorCode(error);
  if (code === undefined || code.startsWith('FST_')) return error;
  return usageError('listen_failed', `cannot listen on ${address}: ${code}`);
}
