/**
 * The ext_authz gRPC door: `envoy.service.auth.v3.Authorization/Check` on TCP or a Unix socket, with health
 * and reflection. Every answer is an OK RPC; what was decided is in the CheckResponse.
 */
import { randomUUID } from 'node:crypto';
import { lstatSync, unlinkSync } from 'node:fs';
import { connect } from 'node:net';
import {
  logVerbosity,
  Server,
  ServerCredentials,
  type ServerUnaryCall,
  type sendUnaryData,
  setLogVerbosity,
} from '@grpc/grpc-js';
import type { PackageDefinition } from '@grpc/proto-loader';
import { ReflectionService } from '@grpc/reflection';
import { HealthImplementation } from 'grpc-health-check';
import { deny } from '../../protocol/reasons.ts';
import type { VerifierMetrics } from '../../telemetry/metrics.ts';
import type { DeniedDecision } from '../../verifier/decision.ts';
import type { Verifier } from '../../verifier/verifier.ts';
import { type EnvoyBodyMode, factsOfCheckRequest } from './check-request.ts';
import { createResponseEncoder, deniedResponse } from './check-response.ts';
import type { CheckRequest } from './messages.ts';
import {
  AUTHORIZATION_SERVICE,
  authorizationService,
  loadPackageDefinition,
  responseSerializers,
} from './service.ts';

export interface ExtAuthzGrpcOptions {
  readonly verifier: Verifier;
  readonly metrics: VerifierMetrics;
  readonly bodyMode: EnvoyBodyMode;
  /** `HOST:PORT` (port 0 picks one) or `unix:PATH`. */
  readonly listen: string;
  /** Most bytes of one CheckRequest, headers and the buffered body; a larger one is denied. */
  readonly maxMessageBytes: number;
  /** A fault of ours; the request has been denied. */
  readonly onInternalError?: (error: unknown) => void;
}

export interface ExtAuthzGrpcDoor {
  /** Where it listens: `HOST:PORT` with the real port, or `unix:PATH`. */
  readonly address: string;
  /** What health checks of the gRPC health protocol are told. */
  setServing(serving: boolean): void;
  /** Takes no new RPCs, lets the others end, at most for the given time. */
  drain(timeoutMs: number): Promise<void>;
}

/**
 * grpc-js answers what is over its own limit with an RPC error, which Envoy turns into an allow under
 * `failure_mode_allow`. So ours comes first, with an answer that denies; grpc-js's only bounds the memory.
 */
const TRANSPORT_ALLOWANCE = 4;

/** Thrown when the address cannot be listened on. */
export class ListenError extends Error {
  override readonly name = 'ListenError';
}

/** @throws ListenError */
export async function openExtAuthzGrpcDoor(options: ExtAuthzGrpcOptions): Promise<ExtAuthzGrpcDoor> {
  // The library would write lines of its own to standard error; what matters comes back as errors.
  setLogVerbosity(logVerbosity.NONE);
  const server = new Server({
    'grpc.max_receive_message_length': options.maxMessageBytes * TRANSPORT_ALLOWANCE,
    // Nobody asks for its records, and it keeps some for every call.
    'grpc.enable_channelz': 0,
  });
  const definition = loadPackageDefinition();
  server.addService(authorizationService(definition, options.maxMessageBytes), {
    Check: createCheckHandler(options, definition),
  });
  const health = new HealthImplementation({ '': 'NOT_SERVING', [AUTHORIZATION_SERVICE]: 'NOT_SERVING' });
  health.addToServer(server);
  new ReflectionService(definition).addToServer(server);
  await removeStaleSocket(options.listen);
  const port = await bind(server, options.listen);
  const address = options.listen.startsWith('unix:')
    ? options.listen
    : options.listen.replace(/:\d+$/, `:${port}`);
  return {
    address,
    setServing(serving) {
      const status = serving ? 'SERVING' : 'NOT_SERVING';
      health.setStatus('', status);
      health.setStatus(AUTHORIZATION_SERVICE, status);
    },
    drain: (timeoutMs) => drain(server, address, timeoutMs),
  };
}

type CheckCall = ServerUnaryCall<CheckRequest, Buffer>;
type Answer = sendUnaryData<Buffer>;

function createCheckHandler(options: ExtAuthzGrpcOptions, definition: PackageDefinition) {
  const { bodyMode, metrics, verifier } = options;
  const report = options.onInternalError ?? (() => undefined);
  const serializers = responseSerializers(definition);
  const encode = createResponseEncoder(serializers);
  // Made beforehand: nothing that goes wrong with one answer may end in an RPC error.
  const refusal = serializers.checkResponse(deniedResponse(internalDenial()));
  const refuse = (error: unknown): Buffer => {
    report(error);
    return refusal;
  };
  return (call: CheckCall, answer: Answer): void => {
    const startedMs = performance.now();
    const send = (encoded: Buffer) => {
      answer(null, encoded);
      metrics.rpcHandled('Check', 'OK', (performance.now() - startedMs) / 1000);
    };
    let encoded: Buffer | Promise<Buffer>;
    try {
      const facts = factsOfCheckRequest(call.request, bodyMode);
      const decision = verifier.check(facts);
      encoded =
        decision instanceof Promise
          ? decision.then((late) => encode(late, facts.headers))
          : encode(decision, facts.headers);
    } catch (error) {
      encoded = refuse(error);
    }
    if (encoded instanceof Promise) encoded.catch(refuse).then(send).catch(report);
    else send(encoded);
  };
}

function internalDenial(): DeniedDecision {
  const denial = deny('verifier_unavailable', 'internal');
  return { kind: 'denied', decisionId: randomUUID(), denial, routeId: undefined };
}

function bind(server: Server, address: string): Promise<number> {
  return new Promise((resolve, reject) => {
    server.bindAsync(address, ServerCredentials.createInsecure(), (error, port) => {
      if (error === null) resolve(port);
      else reject(new ListenError(/\bE[A-Z]{3,}\b/.exec(error.message)?.[0] ?? 'the address cannot be used'));
    });
  });
}

/** A socket file that a killed process left behind, and nobody answers on, would block the address for ever. */
async function removeStaleSocket(address: string): Promise<void> {
  if (!address.startsWith('unix:')) return;
  const path = address.slice('unix:'.length);
  if (!lstatSync(path, { throwIfNoEntry: false })?.isSocket()) return;
  if (await somebodyListens(path)) throw new ListenError(`${path} is in use by another process`);
  unlinkSync(path);
}

function somebodyListens(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path);
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    // Any other error, such as a full backlog or a missing right, does not prove that nobody is there.
    socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code !== 'ECONNREFUSED'));
  });
}

function drain(server: Server, address: string, timeoutMs: number): Promise<void> {
  return new Promise((resolve) => {
    // Ends connections when the time is up. With channelz off forceShutdown does not know of them (grpc-js 1.14).
    server.drain(address, timeoutMs);
    const timer = setTimeout(() => {
      server.forceShutdown();
      resolve();
    }, timeoutMs);
    server.tryShutdown(() => {
      clearTimeout(timer);
      resolve();
    });
  });
}
