/** Composition root of the signer: opens its parts, serves until a stop signal, and closes them in reverse order. */

import { openAdminListener, type ReadinessCheck } from '../../../process/admin/admin-server.ts';
import { createReadinessMetrics } from '../../../process/admin/readiness-metrics.ts';
import { listenFailure } from '../../../process/connections/listen-failure.ts';
import { Closers } from '../../../process/program/closers.ts';
import { faultName } from '../../../process/program/errors.ts';
import type { CliContext, Environment } from '../../../process/program/output.ts';
import { stopped, untilStopped } from '../../../process/program/stop-signal.ts';
import {
  createExtAuthzServerMetrics,
  createRpcMetrics,
} from '../../../process/telemetry/ext-authz-server-metrics.ts';
import { renderMetrics } from '../../../process/telemetry/instruments.ts';
import { createLogger, type Logger } from '../../../process/telemetry/logger.ts';
import { RequestSigner, type SignedRequest } from '../../sign/request-signer.ts';
import { openExtAuthzSigner } from '../ext-authz/ext-authz-signer.ts';
import { openProofsApi } from '../signing-api/proofs-api.ts';
import { openEgress } from './egress-plan.ts';
import { startEmbeddedAgent } from './embedded-agent.ts';
import { IdentityReloader } from './identity-reloader.ts';
import { createSignerMetrics, type SignerPart } from './signer-metrics.ts';
import { planSigner, type SignerPlan, type SignerSettings } from './signer-settings.ts';

/** Runs until SIGTERM or SIGINT; returns after requests in flight are answered. */
export function runSigner(settings: SignerSettings, { env, version }: CliContext): Promise<void> {
  return untilStopped(async (stop) => {
    const logger = createLogger(settings.logLevel);
    const signer = await startSigner(settings, env, logger);
    logger.info({ event: 'listening', version, ...signer.addresses }, 'listening');
    await stopped(stop);
    logger.info({ event: 'draining' }, 'draining');
    await signer.stop();
    logger.info({ event: 'stopped' }, 'stopped');
  });
}

export interface RunningSigner {
  /** Addresses with the actual ports. */
  readonly addresses: {
    readonly admin_listen: string;
    readonly listen?: string;
    readonly api_listen?: string;
    readonly ext_authz_listen?: string;
  };
  /** Answers requests in flight, then closes everything. */
  stop(): Promise<void>;
}

/**
 * Validates the settings before it opens anything.
 * @throws CliError
 */
export async function startSigner(
  settings: SignerSettings,
  env: Environment,
  logger: Logger,
): Promise<RunningSigner> {
  const plan = await planSigner(settings);
  const opened = new Closers(logger);
  try {
    return await openSigner({ plan, settings, env, logger, opened });
  } catch (error) {
    await opened.closeAll();
    throw error;
  }
}

interface Opening {
  readonly plan: SignerPlan;
  readonly settings: SignerSettings;
  readonly env: Environment;
  readonly logger: Logger;
  /** Closes what has been opened so far. */
  readonly opened: Closers;
}

async function openSigner(opening: Opening): Promise<RunningSigner> {
  const { env, logger, opened, plan, settings } = opening;
  const agent = plan.agent && (await startEmbeddedAgent(plan.agent, env, logger));
  opened.add(async () => agent?.stop());
  const signer = new RequestSigner({ proof: settings.proof });
  const identity = new IdentityReloader({
    keyFile: plan.keyFile,
    profileFile: plan.profileFile,
    upstreamOrigins: [
      ...new Set(plan.egress?.routes.map(({ origin }) => `${origin.scheme}://${origin.authority}`)),
    ],
    ...{ signer, logger, unsigned: settings.unsigned },
  });
  const metrics = createSignerMetrics(() => identity.endSeconds());
  if (agent !== undefined) metrics.adopt(agent.registry);
  opened.add(async () => identity.stop());
  await identity.start();
  let isDraining = false;
  const admin = await openAdmin(opening, metrics.registry, () => [
    identity.check(),
    ...(agent?.readiness().filter(({ name }) => name === 'renewal') ?? []),
    { name: 'listener', problem: isDraining ? 'draining: no new requests are taken' : undefined },
  ]);
  const parts = { ...opening, signer, metrics };
  const egress = await openProxy(parts);
  const api = await openApi(parts);
  const extAuthz = await openExtAuthz(parts);
  return {
    addresses: {
      admin_listen: admin,
      ...(egress === undefined ? {} : { listen: egress }),
      ...(api === undefined ? {} : { api_listen: api }),
      ...(extAuthz === undefined ? {} : { ext_authz_listen: extAuthz }),
    },
    stop: async () => {
      isDraining = true;
      await opened.closeAll();
    },
  };
}

interface Parts extends Opening {
  readonly signer: RequestSigner;
  readonly metrics: ReturnType<typeof createSignerMetrics>;
}

/** @throws CliError `listen_failed` */
async function openProxy(parts: Parts): Promise<string | undefined> {
  const { logger, metrics, opened, plan, settings, signer } = parts;
  if (plan.egress === undefined) return undefined;
  const { listen } = plan.egress;
  const server = await openEgress(plan.egress, {
    ...{ logger, signer, unsigned: settings.unsigned, registry: metrics.registry },
    ...observers(parts, 'egress'),
  }).catch((error: unknown) => {
    throw listenFailure(error, listen);
  });
  opened.add(() => server.drain(settings.drainTimeoutMs));
  return server.address;
}

/** @throws CliError `listen_failed` */
async function openApi(parts: Parts): Promise<string | undefined> {
  const { opened, plan, settings, signer } = parts;
  if (plan.api === undefined) return undefined;
  const { listen, token } = plan.api;
  const server = await openProofsApi({
    listen,
    token,
    signer,
    ...apiObservers(parts),
  }).catch((error: unknown) => {
    throw listenFailure(error, listen);
  });
  opened.add(() => server.drain(settings.drainTimeoutMs));
  return server.address;
}

/** A local API has no metrics of connections and durations. */
function apiObservers(parts: Parts) {
  const { onInternalError, onRefused, onSigned } = observers(parts, 'api');
  const ignore = () => undefined;
  const metrics = { refused: onRefused, connections: ignore, requests: ignore, served: ignore };
  return { onInternalError, onSigned, metrics };
}

/** Large enough for headers and the largest body that `envoy/egress.yaml` buffers. */
const MAX_CHECK_BYTES = 16 * 1024 * 1024;

/** @throws CliError `listen_failed` */
async function openExtAuthz(parts: Parts): Promise<string | undefined> {
  const { metrics, opened, plan, settings, signer } = parts;
  const listen = plan.extAuthzListen;
  if (listen === undefined) return undefined;
  const { registry } = metrics;
  const server = await openExtAuthzSigner({
    ...{ listen, signer, unsigned: settings.unsigned, maxMessageBytes: MAX_CHECK_BYTES },
    ...observers(parts, 'ext_authz'),
    metrics: { rpc: createRpcMetrics(registry), extAuthz: createExtAuthzServerMetrics(registry) },
  }).catch((error: unknown) => {
    throw listenFailure(error, listen);
  });
  server.setServing(true);
  opened.add(async () => {
    server.setServing(false);
    await server.drain(settings.drainTimeoutMs);
  });
  return server.address;
}

function observers({ logger, metrics }: Parts, part: SignerPart) {
  return {
    onSigned: (signed: SignedRequest) => {
      metrics.signed(part);
      logSigned(logger, part, signed);
    },
    onPassed: (method: string) => {
      metrics.passed(part);
      logger.warn({ event: 'request_passed', part, method }, 'request sent unsigned: no profile fits it');
    },
    onRefused: (code: string) => {
      metrics.refused(part, code);
      logger.warn({ event: 'request_refused', part, code }, 'request not signed');
    },
    onInternalError: (error: unknown) =>
      logger.error(
        { event: 'internal', fault: faultName(error) },
        'internal fault: the request was not signed',
      ),
  };
}

/** Logs neither the proof nor the path, which may contain personal data. Source: docs/operate/signer.md "Log". */
function logSigned(logger: Logger, part: SignerPart, { keyId, method, routeId, url }: SignedRequest): void {
  logger.info(
    { event: 'request_signed', part, method, origin: url.origin, route_id: routeId, key_id: keyId },
    'request signed',
  );
}

/** @throws CliError `listen_failed` */
async function openAdmin(
  { opened, plan, settings }: Opening,
  registry: Parts['metrics']['registry'],
  readiness: () => readonly ReadinessCheck[],
): Promise<string> {
  createReadinessMetrics(registry, readiness);
  const admin = await openAdminListener({
    ...plan.admin,
    readiness,
    metrics: async () => ({ contentType: registry.contentType, text: await renderMetrics(registry) }),
  }).catch((error: unknown) => {
    throw listenFailure(error, settings.adminListen);
  });
  opened.add(() => admin.close());
  return admin.address;
}
