/** The verifier as an ext_authz server: answers each Check with the verifier's decision. */
import type { PackageDefinition } from '@grpc/proto-loader';
import {
  type AnswerCheck,
  type CheckServer,
  type CheckServerOptions,
  openCheckServer,
} from '../../process/ext-authz/check-server.ts';
import type { OpenCall } from '../../process/ext-authz/open-call.ts';
import { responseSerializers } from '../../process/ext-authz/service.ts';
import type { DecisionTracer } from '../../process/telemetry/decision-trace.ts';
import type { RequestHeaders } from '../../protocol/credentials.ts';
import type { Decision } from '../../verifier/decision/decide.ts';
import type { RequestFacts } from '../../verifier/decision/facts/request-facts.ts';
import { type EnvoyBodyMode, factsOfCheckRequest } from '../../verifier/envoy-request/check-request.ts';
import type { Verifier } from '../../verifier/verifier.ts';
import type { VerifierMetrics } from '../../verifier/verifier-metrics.ts';
import { internalDenial } from '../answers/denial-problem.ts';
import { createResponseEncoder, deniedResponse } from './check-response.ts';

export { ListenError } from '../../process/connections/connection-listener.ts';
export type { CheckServer as ExtAuthzServer } from '../../process/ext-authz/check-server.ts';

export interface ExtAuthzServerOptions extends Omit<CheckServerOptions, 'createAnswerer'> {
  readonly verifier: Pick<Verifier, 'check'>;
  readonly metrics: VerifierMetrics;
  readonly bodyMode: EnvoyBodyMode;
  /** Default: no tracing. */
  readonly tracer?: DecisionTracer | undefined;
  /** Reports an internal error; the request has been denied. */
  readonly onInternalError?: (error: unknown) => void;
}

/** @throws ListenError */
export function openExtAuthzServer(options: ExtAuthzServerOptions): Promise<CheckServer> {
  return openCheckServer({
    ...options,
    createAnswerer: (definition) => createCheckAnswerer(options, definition),
  });
}

interface SafeEncoder {
  encode(decision: Decision, inbound: RequestHeaders): Buffer;
  /** Returns a denial after an internal error. */
  refuse(error: unknown): Buffer;
}

/** An encoding failure results in a denial, never in an RPC error. */
function createSafeEncoder(definition: PackageDefinition, report: (error: unknown) => void): SafeEncoder {
  const serializers = responseSerializers(definition);
  const encode = createResponseEncoder(serializers);
  const refusal = serializers.checkResponse(deniedResponse(internalDenial()));
  const refuse = (error: unknown): Buffer => {
    report(error);
    return refusal;
  };
  return {
    encode(decision, inbound) {
      try {
        return encode(decision, inbound);
      } catch (error) {
        return refuse(error);
      }
    },
    refuse,
  };
}

function createCheckAnswerer(options: ExtAuthzServerOptions, definition: PackageDefinition): AnswerCheck {
  const { bodyMode, tracer, verifier } = options;
  const report = options.onInternalError ?? (() => undefined);
  const { encode, refuse } = createSafeEncoder(definition, report);
  return (request, call, send) => {
    let facts: RequestFacts;
    let decision: Decision | Promise<Decision>;
    try {
      facts = factsOfCheckRequest(request, bodyMode);
      if (tracer !== undefined && call !== undefined) beginTrace(tracer, call, facts);
      decision = verifier.check(facts, call);
    } catch (error) {
      send(refuse(error));
      return;
    }
    const { headers } = facts;
    if (decision instanceof Promise) {
      decision
        .then(
          (late) => send(encode(late, headers)),
          (error: unknown) => send(refuse(error)),
        )
        .catch(report);
    } else {
      send(encode(decision, headers));
    }
  };
}

/** Prefers the trace context of Envoy's Check span to that of the request. */
function beginTrace(tracer: DecisionTracer, call: OpenCall, { headers }: RequestFacts): void {
  const ofRequest = headers.lookup('traceparent');
  call.trace = tracer.begin(call.traceparent(), ofRequest.kind === 'single' ? ofRequest.value : undefined);
}
