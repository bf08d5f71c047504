/** Composition root of every program with a verifier: opens it and its servers, serves until shutdown, and closes them. */

import {
  type AdminListener,
  type AdminOptions,
  openAdminListener,
  type ReadinessCheck,
} from '../../process/admin/admin-server.ts';
import { createReadinessMetrics } from '../../process/admin/readiness-metrics.ts';
import { reportReadiness } from '../../process/admin/readiness-report.ts';
import { listenFailure } from '../../process/connections/listen-failure.ts';
import {
  releaseStartMemory,
  tuneGarbageCollection,
} from '../../process/node-internals/garbage-collection.ts';
import { faultName, usageError } from '../../process/program/errors.ts';
import { type Shutdown, shutdownBySignal } from '../../process/program/graceful-shutdown.ts';
import type { CliContext } from '../../process/program/output.ts';
import { stopped, untilStopped } from '../../process/program/stop-signal.ts';
import type { DecisionTracer } from '../../process/telemetry/decision-trace.ts';
import { renderMetrics } from '../../process/telemetry/instruments.ts';
import { createLogger, type Logger } from '../../process/telemetry/logger.ts';
import { reopenOnHangUp } from '../../verifier/assembly/hang-up.ts';
import { AuditFileError } from '../../verifier/assembly/open-audit.ts';
import type { PrimaryLink } from '../../verifier/assembly/open-bundle.ts';
import {
  type OpenVerifier,
  type OpenVerifierInputs,
  openVerifier,
} from '../../verifier/assembly/open-verifier.ts';
import { verifierReadiness } from '../../verifier/assembly/verifier-readiness.ts';
import { type EnforcementPlan, planEnforcement } from './enforcement-plan.ts';
import type { EnforcementSettings } from './enforcement-settings.ts';

/** A server of an enforcement point. */
export interface PointServer {
  /** Address it listens on, with the actual port. */
  readonly address: string;
  /** Sets the status that the server's own health service reports, if it has one. */
  setServing?(serving: boolean): void;
  /** Further readiness checks, such as of its TLS certificate. */
  checks(): readonly ReadinessCheck[];
  /** Rejects new requests and waits until the others end, at most for the given time. */
  drain(timeoutMs: number): Promise<void>;
}

/** A server whose settings are valid. */
export interface PlannedServer {
  /** Its address in the "listening" log line. */
  readonly name: keyof Addresses;
  /** Its address as configured. */
  readonly listen: string;
  /** @throws ListenError */
  open(inputs: ServerInputs): Promise<PointServer>;
}

export interface ServerInputs extends Pick<OpenVerifier, 'verifier' | 'metrics'> {
  readonly logger: Logger;
  /** Undefined when tracing is off. */
  readonly tracer: DecisionTracer | undefined;
  /** Called after everything is loaded and before the server listens. */
  readonly beforeListening: () => void;
  /** Reports an internal error; the request has been denied. */
  readonly onInternalError: (error: unknown) => void;
}

/** What differs between a single verifier process and one of several workers: see `workers/`. */
export interface ProcessRole {
  /** Number of this worker; undefined in a single process. */
  readonly worker: string | undefined;
  /** Runs a verifier until the shutdown that it passes to `run`. */
  readonly runUntilShutdown: (
    settings: EnforcementSettings,
    run: (shutdown: Shutdown) => Promise<void>,
  ) => Promise<void>;
  /** Of a worker. */
  readonly primary?: PrimaryLink;
  /** @param address of the first server */
  readonly openAdmin: (options: AdminOptions, address: string) => Promise<AdminListener>;
  /** Writes the "listening" log line. */
  readonly logStart: (logger: Logger, started: Started) => void;
}

/** Where the servers listen, by name. */
interface Addresses {
  readonly listen?: string;
  readonly http_listen?: string;
}

interface Started {
  readonly version: string;
  readonly authSite: string;
  /** By the servers' names. */
  readonly addresses: Addresses;
  readonly adminListen: string;
}

const SINGLE_PROCESS: ProcessRole = {
  worker: undefined,
  runUntilShutdown: ({ drainDelayMs }, run) =>
    untilStopped((stop) => run(shutdownBySignal(stop, drainDelayMs))),
  openAdmin: (options) => openAdminListener(options),
  logStart: (logger, { addresses: { http_listen, listen }, adminListen, authSite, version }) =>
    logger.info(
      { version, listen, http_listen, admin_listen: adminListen, auth_site: authSite },
      'listening',
    ),
};

export interface EnforcementInputs {
  readonly settings: EnforcementSettings;
  readonly context: CliContext;
  /** Validates the settings of the program's servers. @throws CliError */
  readonly planServers: () => Promise<readonly PlannedServer[]>;
  readonly role?: ProcessRole | undefined;
}

/** Runs until SIGTERM or SIGINT; returns after requests in flight are answered. */
export function runEnforcement(inputs: EnforcementInputs): Promise<void> {
  const { role = SINGLE_PROCESS, settings } = inputs;
  return role.runUntilShutdown(settings, (shutdown) => serve({ ...inputs, role, shutdown }));
}

interface ServeInputs extends EnforcementInputs {
  readonly role: ProcessRole;
  readonly shutdown: Shutdown;
}

/** All parts except the listeners. */
interface Parts extends ServeInputs, OpenVerifier {
  readonly plan: EnforcementPlan;
  readonly servers: readonly PlannedServer[];
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
  const servers = await inputs.planServers();
  const plan = await planEnforcement(settings, worker !== undefined);
  const onInternalError = (error: unknown) =>
    logger.error({ fault: faultName(error) }, 'internal fault: the request was denied');
  const metricLabels = worker === undefined ? {} : { worker };
  const { primary } = role;
  const opened = await openOrExplain({
    ...{ setup: plan.setup, logger, metricLabels, onInternalError, primary },
  });
  try {
    hangUp.start(opened.reopenAudit);
    if (!shutdown.isBeforeOpening())
      await keepOpen({ ...inputs, ...opened, plan, servers, logger, onInternalError });
  } finally {
    hangUp.stop();
    await opened.close();
  }
  logger.info('stopped');
}

/** @throws CliError `audit_file_unusable` */
async function openOrExplain(inputs: OpenVerifierInputs): Promise<OpenVerifier> {
  try {
    return await openVerifier(inputs);
  } catch (error) {
    throw error instanceof AuditFileError ? usageError('audit_file_unusable', error.message) : error;
  }
}

/** Opens the listeners, waits for shutdown, and closes them after requests in flight are answered. */
async function keepOpen(parts: Parts): Promise<void> {
  const { context, logger, role, settings, shutdown } = parts;
  const { addresses, admin, close } = await openListeners(parts);
  try {
    if (shutdown.isBeforeOpening()) return;
    const { authSite } = settings;
    role.logStart(logger, { version: context.version, authSite, addresses, adminListen: admin.address });
    await stopped(shutdown.begun);
    logger.info('draining');
    // Health checks now remove this verifier from load balancing; until then it answers requests as before.
    await shutdown.untilClosing();
  } finally {
    await close();
  }
}

interface Listeners {
  readonly addresses: Addresses;
  readonly admin: AdminListener;
  /** Answers requests in flight, at most for the drain timeout. */
  readonly close: () => Promise<void>;
}

/** @throws CliError `listen_failed` */
async function openListeners(parts: Parts): Promise<Listeners> {
  const { logger, metrics, plan, role, settings, shutdown } = parts;
  const { begun } = shutdown;
  const tracer = await openTracer(parts);
  const { addresses, drain, servers } = await openServers(parts, tracer);
  const readiness = (leaving: boolean): readonly ReadinessCheck[] => [
    ...verifierReadiness({ ...parts.status(), leaving }),
    ...servers.flatMap((server) => server.checks()),
  ];
  createReadinessMetrics(metrics.registry, () => readiness(begun.aborted));
  const { registry } = metrics;
  const adminOptions = {
    ...plan.admin,
    readiness: () => readiness(begun.aborted),
    metrics: async () => ({ contentType: registry.contentType, text: await renderMetrics(registry) }),
  };
  const [address = ''] = Object.values(addresses);
  const admin = await role.openAdmin(adminOptions, address).catch(async (error: unknown) => {
    await drain(0);
    throw listenFailure(error, settings.adminListen);
  });
  const setServing = (serving: boolean) => {
    for (const server of servers) server.setServing?.(serving);
  };
  // `false`: the "draining" line already logs the shutdown.
  const stopReporting = reportReadiness({
    readiness: () => readiness(false),
    setServing,
    logger,
    leaving: begun,
  });
  const close = async () => {
    stopReporting();
    setServing(false);
    await drain(settings.drainTimeoutMs);
    await admin.close();
  };
  return { addresses, admin, close };
}

/** Opens all servers, or none. @throws CliError `listen_failed` */
async function openServers(parts: Parts, tracer: DecisionTracer | undefined) {
  const { logger, metrics, onInternalError, verifier } = parts;
  // The collection blocks the process, and before listening no request or health check waits for it.
  const inputs = { verifier, metrics, logger, tracer, onInternalError, beforeListening: releaseStartMemory };
  const opened: { readonly name: keyof Addresses; readonly server: PointServer }[] = [];
  const drain = async (timeoutMs: number) => {
    await Promise.all(opened.map(({ server }) => server.drain(timeoutMs)));
    await tracer?.close();
  };
  for (const planned of parts.servers) {
    const server = await planned.open(inputs).catch(async (error: unknown) => {
      await drain(0);
      throw listenFailure(error, planned.listen);
    });
    opened.push({ name: planned.name, server });
  }
  const addresses: Addresses = Object.fromEntries(opened.map(({ name, server }) => [name, server.address]));
  return { servers: opened.map(({ server }) => server), addresses, drain };
}

/** Loads the OpenTelemetry libraries only when tracing is configured. */
async function openTracer({
  context,
  logger,
  metrics,
  settings,
}: Parts): Promise<DecisionTracer | undefined> {
  if (settings.otlpEndpoint === undefined) return undefined;
  const { createOtlpTracer } = await import('../../process/telemetry/tracing.ts');
  return createOtlpTracer({
    endpoint: settings.otlpEndpoint,
    registry: metrics.registry,
    authSite: settings.authSite,
    version: context.version,
    onFailure: (code) => logger.warn({ code }, 'traces cannot be exported'),
  });
}
