/** Composition root of the broker: opens its parts, serves until a stop signal, and closes the parts in reverse order. */

import { openAdminListener, type ReadinessCheck } from '../../process/admin/admin-server.ts';
import { createReadinessMetrics } from '../../process/admin/readiness-metrics.ts';
import { listenFailure } from '../../process/connections/listen-failure.ts';
import { followTlsFiles } from '../../process/connections/listener-tls.ts';
import { Closers } from '../../process/program/closers.ts';
import { usageError } from '../../process/program/errors.ts';
import type { CliContext } from '../../process/program/output.ts';
import { stopped, untilStopped } from '../../process/program/stop-signal.ts';
import { createLogger, type Logger } from '../../process/telemetry/logger.ts';
import { reopenOnHangUp } from '../../verifier/assembly/hang-up.ts';
import { AuditFileError, type OpenAudit, openAudit } from '../../verifier/assembly/open-audit.ts';
import { auditCheck } from '../../verifier/assembly/verifier-readiness.ts';
import { createBrokerApp } from '../api/broker-app.ts';
import { openBrokerFiles } from './broker-files.ts';
import { createBrokerServer, openBrokerListener } from './broker-listener.ts';
import { type BrokerPlan, planBroker } from './broker-plan.ts';
import { type BrokerProcessMetrics, createBrokerProcessMetrics } from './broker-process-metrics.ts';
import type { BrokerProcessSettings } from './broker-settings.ts';
import { callersCheck } from './callers-check.ts';
import { ClientConnections } from './client-connections.ts';
import { openTrustSources } from './trust-sources.ts';

export interface RunningBroker {
  /** `HOST:PORT` with the real port, or `unix:PATH`. */
  readonly address: string;
  readonly adminAddress: string;
  /** Answers requests in flight, then closes everything. */
  stop(): Promise<void>;
}

/** Runs until SIGTERM or SIGINT; returns after requests in flight are answered. */
export function runBroker(settings: BrokerProcessSettings, context: CliContext): Promise<void> {
  return untilStopped((stop) => serveUntil(stop, settings, context));
}

async function serveUntil(
  stop: AbortSignal,
  settings: BrokerProcessSettings,
  { version }: CliContext,
): Promise<void> {
  const logger = createLogger(settings.logLevel);
  const broker = await startBroker(settings, logger);
  logger.info(
    {
      event: 'listening',
      version,
      listen: broker.address,
      admin_listen: broker.adminAddress,
      public_url: settings.publicUrl,
    },
    'listening',
  );
  await stopped(stop);
  logger.info({ event: 'draining' }, 'draining');
  await broker.stop();
  logger.info({ event: 'stopped' }, 'stopped');
}

/**
 * Validates the settings before it opens anything.
 * @throws CliError
 */
export async function startBroker(settings: BrokerProcessSettings, logger: Logger): Promise<RunningBroker> {
  const plan = await planBroker(settings);
  const opened = new Closers(logger);
  try {
    return await openBroker({ plan, settings, logger, opened, metrics: createBrokerProcessMetrics() });
  } catch (error) {
    await opened.closeAll();
    throw error;
  }
}

interface Opening {
  readonly plan: BrokerPlan;
  readonly settings: BrokerProcessSettings;
  readonly logger: Logger;
  readonly metrics: BrokerProcessMetrics;
  /** Closes what has been opened so far. */
  readonly opened: Closers;
}

async function openBroker(opening: Opening): Promise<RunningBroker> {
  const { plan, settings, logger, metrics, opened } = opening;
  const observer = { logger, onReload: metrics.reloaded };
  const files = await openBrokerFiles(settings, observer);
  opened.add(async () => files.close());
  const trust = await openTrustSources(plan.trust, observer, Date.now);
  opened.add(() => trust.close());
  const audit = await openAuditTrail(opening);
  const connections = new ClientConnections(
    plan.listen.startsWith('unix:'),
    Date.now,
    metrics.connectionClosed,
  );
  const unsubscribe = trust.bundles.onChange(() => connections.closeCertified());
  opened.add(async () => unsubscribe());
  const app = await createBrokerApp({
    settings: plan.settings,
    ports: {
      ...files.ports,
      trustBundles: trust.bundles,
      connectionOf: (request) => connections.connectionOf(request),
      audit: audit.sink,
      metrics: metrics.broker,
      nowMs: Date.now,
    },
    log: logger,
    createServer: createBrokerServer,
  });
  opened.add(() => app.close());
  await app.ready();
  let isDraining = false;
  const callerSources = { ...files.ports, trustBundles: trust.bundles, nowMs: Date.now };
  const checks: (() => readonly ReadinessCheck[])[] = [
    () => files.checks(),
    () => trust.checks(),
    () => [callersCheck(callerSources, plan.settings.acceptsJwtSvids), auditCheck(audit.health())],
    () => [{ name: 'listener', problem: isDraining ? 'draining: no new requests are taken' : undefined }],
  ];
  const adminAddress = await openAdmin(opening, () => checks.flatMap((read) => read()));
  const { address, tlsCheck } = await openListener(opening, connections, app.server);
  if (tlsCheck !== undefined) checks.push(() => [tlsCheck()]);
  const stop = async () => {
    isDraining = true;
    await opened.closeAll();
  };
  return { address, adminAddress, stop };
}

/** @throws CliError `audit_file_unusable` */
async function openAuditTrail({ plan, logger, metrics, opened }: Opening): Promise<OpenAudit> {
  const hangUp = reopenOnHangUp(logger);
  opened.add(async () => hangUp.stop());
  try {
    const audit = await openAudit(plan.audit, false, logger, metrics);
    opened.add(() => audit.sink.close());
    hangUp.start(() => audit.sink.reopen());
    return audit;
  } catch (error) {
    throw error instanceof AuditFileError ? usageError('audit_file_unusable', error.message) : error;
  }
}

/** @throws CliError `listen_failed` */
async function openAdmin(
  { plan, settings, metrics: { registry }, opened }: Opening,
  readiness: () => readonly ReadinessCheck[],
): Promise<string> {
  createReadinessMetrics(registry, readiness);
  const admin = await openAdminListener({
    ...plan.admin,
    readiness,
    metrics: async () => ({ contentType: registry.contentType, text: await registry.metrics() }),
  }).catch((error: unknown) => {
    throw listenFailure(error, settings.adminListen);
  });
  opened.add(() => admin.close());
  return admin.address;
}

/** @throws CliError `listen_failed` */
async function openListener(
  { plan, settings, logger, metrics, opened }: Opening,
  connections: ClientConnections,
  server: ReturnType<typeof createBrokerServer>,
) {
  const { tls } = plan;
  const listener = await openBrokerListener({
    listen: plan.listen,
    tls,
    maxConnections: settings.maxConnections,
    metrics: metrics.listener,
    connections,
    server,
  }).catch((error: unknown) => {
    throw listenFailure(error, settings.listen);
  });
  opened.add(() => listener.drain(settings.drainTimeoutMs));
  if (tls === undefined) return { address: listener.address, tlsCheck: undefined };
  const follower = followTlsFiles({
    plan: tls,
    take: (material) => listener.setTlsMaterial(material),
    metrics: metrics.certificate,
    logger,
  });
  opened.add(async () => follower.close());
  const { problem, warning } = follower.check();
  const text = problem ?? warning;
  if (text !== undefined) logger.warn({ event: 'certificate_ends', text }, 'the certificate ends');
  return { address: listener.address, tlsCheck: () => follower.check() };
}
