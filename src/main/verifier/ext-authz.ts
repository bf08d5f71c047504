/** Opens the verifier's ext_authz server from its settings: address, TLS certificate and tracer. */
import type { ReadinessCheck } from '../../enforcement/admin/admin-server.ts';
import {
  type ExtAuthzServer,
  type ExtAuthzServerOptions,
  openExtAuthzServer,
} from '../../enforcement/ext-authz-grpc/ext-authz-server.ts';
import { usageError } from '../../program/errors.ts';
import { parseGrpcAddress } from '../../program/listen-address.ts';
import type { DecisionTracer } from '../../telemetry/decision-trace.ts';
import type { Logger } from '../../telemetry/logger.ts';
import { followTlsFiles, planServerTls, type ServerTlsPlan } from './server-tls.ts';
import type { VerifierSettings } from './verifier-settings.ts';

/** Validated settings. Contains the TLS private key. */
export interface ExtAuthzPlan {
  readonly listen: string;
  readonly tls: ServerTlsPlan | undefined;
  /** Undefined when tracing is off. */
  readonly otlpEndpoint: URL | undefined;
}

export interface VerifierExtAuthz extends ExtAuthzServer {
  /** Readiness checks of its TLS certificate. */
  checks(): readonly ReadinessCheck[];
}

/** @throws CliError with exit code 2 */
export async function planExtAuthz(settings: VerifierSettings): Promise<ExtAuthzPlan> {
  return {
    listen: parseGrpcAddress('listen', settings.listen),
    tls: await planServerTls(settings),
    otlpEndpoint: parseOtlpEndpoint(settings.otlpEndpoint),
  };
}

function parseOtlpEndpoint(text: string | undefined): URL | undefined {
  if (text === undefined) return undefined;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isHttp = url?.protocol === 'http:' || url?.protocol === 'https:';
  if (url === undefined || !isHttp || url.username !== '' || url.search !== '' || url.hash !== '') {
    throw usageError(
      'bad_otlp_endpoint',
      '--otlp-endpoint must be http:// or https://HOST[:PORT][/PATH], such as http://127.0.0.1:4318',
    );
  }
  return url;
}

export interface ExtAuthzInputs
  extends Pick<ExtAuthzServerOptions, 'verifier' | 'metrics' | 'beforeListening' | 'onInternalError'> {
  readonly plan: ExtAuthzPlan;
  readonly settings: VerifierSettings;
  readonly version: string;
  readonly logger: Logger;
}

/** @throws ListenError */
export async function openExtAuthz(inputs: ExtAuthzInputs): Promise<VerifierExtAuthz> {
  const { logger, metrics, plan, settings, verifier, beforeListening, onInternalError } = inputs;
  const tracer = await openTracer(inputs);
  const extAuthz = await openExtAuthzServer({
    verifier,
    metrics,
    listen: plan.listen,
    tls: plan.tls,
    tracer,
    bodyMode: settings.envoyBody,
    maxMessageBytes: settings.maxMessageBytes,
    maxConnections: settings.maxConnections,
    reflection: settings.grpcReflection,
    ...(beforeListening && { beforeListening }),
    ...(onInternalError && { onInternalError }),
  }).catch(async (error: unknown) => {
    await tracer?.close();
    throw error;
  });
  const tls =
    plan.tls &&
    followTlsFiles({
      plan: plan.tls,
      take: (material) => extAuthz.setTlsMaterial(material),
      metrics: metrics.extAuthz,
      logger,
    });
  return {
    ...extAuthz,
    checks: () => (tls === undefined ? [] : [tls.check()]),
    drain: async (timeoutMs) => {
      tls?.close();
      await extAuthz.drain(timeoutMs);
      await tracer?.close();
    },
  };
}

/** Loads the OpenTelemetry libraries only when tracing is configured. */
async function openTracer({
  logger,
  metrics,
  plan,
  settings,
  version,
}: ExtAuthzInputs): Promise<DecisionTracer | undefined> {
  if (plan.otlpEndpoint === undefined) return undefined;
  const { createOtlpTracer } = await import('../../telemetry/tracing.ts');
  return createOtlpTracer({
    endpoint: plan.otlpEndpoint,
    registry: metrics.registry,
    authSite: settings.authSite,
    version,
    onFailure: (code) => logger.warn({ code }, 'traces cannot be exported'),
  });
}
