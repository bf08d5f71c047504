/**
 * A gRPC server of `envoy.service.auth.v3.Authorization/Check` on TCP or a Unix socket, with or without TLS, with health
 * and, if enabled, reflection. Every RPC ends with status OK; the CheckResponse contains the decision.
 */
import {
  type ConnectionInjector,
  logVerbosity,
  Server,
  ServerCredentials,
  type ServerUnaryCall,
  type sendUnaryData,
  setLogVerbosity,
} from '@grpc/grpc-js';
import type { PackageDefinition } from '@grpc/proto-loader';
import { HealthImplementation } from 'grpc-health-check';
import { type ConnectionListener, openConnectionListener } from '../connections/connection-listener.ts';
import type { ServerTls, TlsMaterial } from '../connections/tls-material.ts';
import { prepareConnections } from '../node-internals/http2-connections.ts';
import { withinMs } from '../program/time-limit.ts';
import type { ExtAuthzServerMetrics, RpcMetrics } from '../telemetry/ext-authz-server-metrics.ts';
import type { OpenCall } from './open-call.ts';
import { CALL_LIMITS, type CallLimits, OpenCalls } from './open-calls.ts';
import type { CheckRequest } from './request-messages.ts';
import { AUTHORIZATION_SERVICE, authorizationService, loadPackageDefinition, UNREADABLE } from './service.ts';

export interface CheckServerOptions {
  readonly createAnswerer: (definition: PackageDefinition) => AnswerCheck;
  readonly metrics: { readonly extAuthz: ExtAuthzServerMetrics; readonly rpc: RpcMetrics };
  /** `HOST:PORT` (port 0 picks a free one) or `unix:PATH`. */
  readonly listen: string;
  /** Maximum size of a CheckRequest, headers and buffered body, in bytes. A larger one is denied. */
  readonly maxMessageBytes: number;
  /** Default: plaintext. */
  readonly tls?: ServerTls | undefined;
  /** Default: off. */
  readonly reflection?: boolean;
  /** Default 1024. */
  readonly maxConnections?: number;
  readonly callLimits?: CallLimits;
  /** Called after everything is loaded and before the server listens. */
  readonly beforeListening?: () => void;
}

export interface CheckServer {
  /** Address it listens on: `HOST:PORT` with the actual port, or `unix:PATH`. */
  readonly address: string;
  /** Sets the status that the gRPC health service reports. */
  setServing(serving: boolean): void;
  /**
   * Uses the material for new handshakes. When the client CA changes, connections under the old one receive GOAWAY and
   * are closed within ten seconds.
   * @throws TlsMaterialError, and keeps the current material
   */
  setTlsMaterial(material: TlsMaterial): void;
  /** Rejects new RPCs and waits until the others end, at most for the given time. */
  drain(timeoutMs: number): Promise<void>;
}

const MAX_CONNECTIONS = 1024;
/**
 * Equals the number of concurrent requests in the shipped Envoy configuration. A client that has not received the
 * setting yet would otherwise get rejections.
 */
const MAX_STREAMS_OF_CONNECTION = 1024;
/** A peer that does not answer the ping within the timeout is gone. */
const KEEPALIVE = { 'grpc.keepalive_time_ms': 30_000, 'grpc.keepalive_timeout_ms': 20_000 };
const DESTROY_WAIT_MS = 500;

/** @throws ListenError */
export async function openCheckServer(options: CheckServerOptions): Promise<CheckServer> {
  // The library would write lines of its own to standard error; real problems surface as errors.
  setLogVerbosity(logVerbosity.NONE);
  let listener: ConnectionListener | undefined;
  const definition = loadPackageDefinition();
  const answerCheck = options.createAnswerer(definition);
  const calls = new OpenCalls({
    rpc: options.metrics.rpc,
    extAuthz: options.metrics.extAuthz,
    limits: options.callLimits ?? CALL_LIMITS,
    bytesReceived: () => listener?.bytesReceived() ?? 0,
    deny: (call, send) => answerCheck(UNREADABLE, call, send),
  });
  const server = createGrpcServer(options, calls);
  server.addService(authorizationService(definition), {
    Check: (call: CheckCall, answer: sendUnaryData<Buffer>) =>
      answerCheck(call.request, calls.current(), (bytes) => answer(null, bytes)),
  });
  const setServing = addHealth(server);
  if (options.reflection === true) {
    const { ReflectionService } = await import('@grpc/reflection');
    new ReflectionService(definition).addToServer(server);
  }
  const acceptor = new ConnectionAcceptor(server, options.tls?.material.clientCa);
  options.beforeListening?.();
  try {
    listener = await openConnectionListener({
      listen: options.listen,
      maxConnections: options.maxConnections ?? MAX_CONNECTIONS,
      tls: options.tls,
      protocols: ['h2'],
      metrics: options.metrics.extAuthz,
      onConnection: (connection) => acceptor.accept(connection),
    });
  } catch (error) {
    calls.close();
    server.forceShutdown();
    throw error;
  }
  const opened = listener;
  return {
    address: opened.address,
    setServing,
    setTlsMaterial: (material) => {
      opened.setTlsMaterial(material);
      acceptor.trustClientCa(material.clientCa);
    },
    drain: (timeoutMs) => drain({ server, listener: opened, calls, acceptor }, timeoutMs),
  };
}

function createGrpcServer({ maxMessageBytes }: CheckServerOptions, calls: OpenCalls): Server {
  return new Server({
    ...KEEPALIVE,
    // A larger Check is denied by its announced length (`open-call.ts`), and the rest of it is not read.
    'grpc.max_receive_message_length': maxMessageBytes,
    'grpc.max_concurrent_streams': MAX_STREAMS_OF_CONNECTION,
    // Channelz is not used, and it would keep records for every call.
    'grpc.enable_channelz': 0,
    interceptors: [calls.interceptor],
  });
}

/** @returns sets the status and notifies watchers when it changes */
function addHealth(server: Server): (serving: boolean) => void {
  let reported = 'NOT_SERVING' as 'SERVING' | 'NOT_SERVING';
  const health = new HealthImplementation({ '': reported, [AUTHORIZATION_SERVICE]: reported });
  health.addToServer(server);
  return (serving) => {
    const status = serving ? 'SERVING' : 'NOT_SERVING';
    if (status === reported) return;
    reported = status;
    health.setStatus('', status);
    health.setStatus(AUTHORIZATION_SERVICE, status);
  };
}

/**
 * How long connections under a replaced client CA may stay open. Connections have no maximum age or idle time, because
 * Envoy does not retry a Check that a closing connection loses.
 */
const REPLACED_CA_DRAIN_MS = 10_000;

/** One grpc-js injector for each client CA, so that the connections under a replaced CA can be drained. */
class ConnectionAcceptor {
  readonly #server: Server;
  readonly #injectors: ConnectionInjector[] = [];
  #current: ConnectionInjector;
  #clientCa: string | undefined;

  constructor(server: Server, clientCa: string | undefined) {
    this.#server = server;
    this.#clientCa = clientCa;
    this.#current = this.#add();
  }

  accept(connection: Parameters<ConnectionInjector['injectConnection']>[0]): void {
    this.#current.injectConnection(connection);
  }

  trustClientCa(clientCa: string | undefined): void {
    if (clientCa === this.#clientCa) return;
    this.#clientCa = clientCa;
    const former = this.#current;
    this.#current = this.#add();
    former.drain(REPLACED_CA_DRAIN_MS);
  }

  /** Closes every connection now. */
  closeAll(): void {
    for (const injector of this.#injectors) injector.drain(0);
  }

  #add(): ConnectionInjector {
    // The listener has already done the TLS handshake.
    const injector = this.#server.createConnectionInjector(ServerCredentials.createInsecure());
    this.#injectors.push(injector);
    prepareConnections(this.#server);
    return injector;
  }
}

type CheckCall = ServerUnaryCall<CheckRequest, Buffer>;
/** Must send once, and never throw. */
export type AnswerCheck = (
  request: CheckRequest,
  call: OpenCall | undefined,
  send: (bytes: Buffer) => void,
) => void;

interface DrainedParts {
  readonly server: Server;
  readonly listener: ConnectionListener;
  readonly calls: OpenCalls;
  readonly acceptor: ConnectionAcceptor;
}

async function drain({ calls, acceptor, listener, server }: DrainedParts, timeoutMs: number): Promise<void> {
  listener.stop();
  calls.endStreams();
  const ended = new Promise<true>((resolve) => server.tryShutdown(() => resolve(true)));
  if (!(await withinMs(timeoutMs, ended, false))) {
    acceptor.closeAll();
    await withinMs(DESTROY_WAIT_MS, listener.closed, undefined);
    server.forceShutdown();
  }
  // Closes connections that have not reached gRPC, such as pending handshakes.
  listener.destroy();
  await listener.closed;
  calls.close();
}
