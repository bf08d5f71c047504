/** The sidecar's gRPC door from settings: its address, its certificate, who is told of its decisions' traces. */
import type { ReadinessCheck } from '../../enforcement/admin/server.ts';
import {
  type ExtAuthzGrpcDoor,
  type ExtAuthzGrpcOptions,
  openExtAuthzGrpcDoor,
} from '../../enforcement/ext-authz-grpc/server.ts';
import { usageError } from '../../program/errors.ts';
import { parseGrpcAddress } from '../../program/listen-address.ts';
import type { DecisionTracer } from '../../telemetry/decision-trace.ts';
import type { Logger } from '../../telemetry/logger.ts';
import { type DoorTlsPlan, followTlsFiles, planDoorTls } from './door-tls.ts';
import type { VerifierSettings } from './verifier-settings.ts';

/** Settings that can work together. Holds a secret. */
export interface DoorPlan {
  readonly listen: string;
  readonly tls: DoorTlsPlan | undefined;
  /** Undefined: nothing is traced. */
  readonly otlpEndpoint: URL | undefined;
}

export interface VerifierDoor extends ExtAuthzGrpcDoor {
  /** What `/readyz` says of it, beside whether it takes checks. */
  checks(): readonly ReadinessCheck[];
}

/** @throws CliError with exit code 2 */
export async function planDoor(settings: VerifierSettings): Promise<DoorPlan> {
  return {
    listen: parseGrpcAddress('listen', settings.listen),
    tls: await planDoorTls(settings),
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

export interface DoorInputs
  extends Pick<ExtAuthzGrpcOptions, 'verifier' | 'metrics' | 'beforeListening' | 'onInternalError'> {
  readonly plan: DoorPlan;
  readonly settings: VerifierSettings;
  readonly version: string;
  readonly logger: Logger;
}

/** @throws ListenError */
export async function openDoor(inputs: DoorInputs): Promise<VerifierDoor> {
  const { logger, metrics, plan, settings, verifier, beforeListening, onInternalError } = inputs;
  const tracer = await openTracer(inputs);
  const door = await openExtAuthzGrpcDoor({
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
      take: (material) => door.setTlsMaterial(material),
      metrics: metrics.door,
      logger,
    });
  return {
    ...door,
    checks: () => (tls === undefined ? [] : [tls.check()]),
    drain: async (timeoutMs) => {
      tls?.close();
      await door.drain(timeoutMs);
      await tracer?.close();
    },
  };
}

/** The tracer's libraries are loaded only for those who want traces. */
async function openTracer({
  logger,
  metrics,
  plan,
  settings,
  version,
}: DoorInputs): Promise<DecisionTracer | undefined> {
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
