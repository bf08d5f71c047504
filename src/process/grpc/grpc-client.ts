/**
 * A gRPC client for one service of `proto/`, over an address without TLS. Each client has its own connections, so that
 * a new client never waits for the backoff of an old one.
 */
import { fileURLToPath } from 'node:url';
import { Client, credentials, Metadata, type MethodDefinition, type ServiceDefinition } from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';

/** Request and response of each method: names as in `proto/`, `bytes` as Buffers, absent fields with their default. */
export type GrpcMethods = {
  readonly [method: string]: { readonly request: object; readonly response: unknown };
};

export interface GrpcServiceOptions {
  /** Path below `proto/`, such as `spiffe/workload.proto`. */
  readonly file: string;
  /** Full name, such as `SpiffeWorkloadAPI`. */
  readonly service: string;
  /** Sent with each call. */
  readonly metadata: Readonly<Record<string, string>>;
  /** Interval of checks of a connection with an open call, and timeout of their answers. */
  readonly keepalive: { readonly timeMs: number; readonly timeoutMs: number };
}

export interface CallOptions {
  readonly signal: AbortSignal;
  /** Default: none. */
  readonly timeoutMs?: number;
}

/** Why a call failed. Source: gRPC "Status codes and their use in gRPC". */
export class GrpcError extends Error {
  override readonly name = 'GrpcError';
  /** `@grpc/grpc-js` `status`, such as 14 for UNAVAILABLE. */
  readonly code: number;

  constructor(code: number) {
    super(`gRPC status ${code}`);
    this.code = code;
  }
}

const PROTO_DIRECTORY = fileURLToPath(new URL('../../../proto', import.meta.url));

/** Calls of one connection; {@link GrpcConnection.close} it after use. */
export interface GrpcConnection<Methods extends GrpcMethods> {
  /** @throws GrpcError */
  unary<M extends keyof Methods & string>(
    method: M,
    request: Methods[M]['request'],
    options: CallOptions,
  ): Promise<Methods[M]['response']>;
  /** Passes each message of the stream to the function, and resolves when the server ends the stream. @throws GrpcError */
  stream<M extends keyof Methods & string>(
    method: M,
    request: Methods[M]['request'],
    onMessage: (message: Methods[M]['response']) => void,
    options: CallOptions,
  ): Promise<void>;
  close(): void;
}

/** Loads the service once and returns a function that opens connections to it. */
export function grpcService<Methods extends GrpcMethods>({
  file,
  service,
  metadata: pairs,
  keepalive,
}: GrpcServiceOptions): (target: string) => GrpcConnection<Methods> {
  const loaded = loadSync(file, {
    keepCase: true,
    longs: Number,
    defaults: true,
    includeDirs: [PROTO_DIRECTORY],
  });
  const methods = loaded[service] as ServiceDefinition;
  const metadata = new Metadata();
  for (const [name, value] of Object.entries(pairs)) metadata.set(name, value);
  const channelOptions = {
    'grpc.use_local_subchannel_pool': 1,
    // A proxy must not see the messages of a local agent.
    'grpc.enable_http_proxy': 0,
    'grpc.keepalive_time_ms': keepalive.timeMs,
    'grpc.keepalive_timeout_ms': keepalive.timeoutMs,
  };
  return (target) => {
    const client = new Client(target, credentials.createInsecure(), channelOptions);
    return connectionOf(client, methods, metadata);
  };
}

function connectionOf<Methods extends GrpcMethods>(
  client: Client,
  methods: ServiceDefinition,
  metadata: Metadata,
): GrpcConnection<Methods> {
  const definitionOf = <M extends keyof Methods & string>(method: M) =>
    methods[method] as MethodDefinition<Methods[M]['request'], Methods[M]['response']>;
  return {
    unary: (method, request, { signal, timeoutMs }) =>
      new Promise((resolve, reject) => {
        const { path, requestSerialize, responseDeserialize } = definitionOf(method);
        const options = timeoutMs === undefined ? {} : { deadline: Date.now() + timeoutMs };
        const call = client.makeUnaryRequest(
          path,
          requestSerialize,
          responseDeserialize,
          request,
          metadata,
          options,
          (error, response) => {
            signal.removeEventListener('abort', cancel);
            if (error !== null) reject(new GrpcError(error.code));
            else if (response === undefined) reject(new GrpcError(INTERNAL));
            else resolve(response);
          },
        );
        const cancel = () => call.cancel();
        signal.addEventListener('abort', cancel, { once: true });
        if (signal.aborted) cancel();
      }),
    stream: (method, request, onMessage, { signal, timeoutMs }) =>
      new Promise((resolve, reject) => {
        const { path, requestSerialize, responseDeserialize } = definitionOf(method);
        const options = timeoutMs === undefined ? {} : { deadline: Date.now() + timeoutMs };
        const call = client.makeServerStreamRequest(
          path,
          requestSerialize,
          responseDeserialize,
          request,
          metadata,
          options,
        );
        const cancel = () => call.cancel();
        signal.addEventListener('abort', cancel, { once: true });
        if (signal.aborted) cancel();
        call.on('data', onMessage);
        call.on('status', ({ code }) => {
          signal.removeEventListener('abort', cancel);
          if (code === 0) resolve();
          else reject(new GrpcError(code));
        });
        // The status says the same; without a listener the error would be unhandled.
        call.on('error', () => {});
      }),
    close: () => client.close(),
  };
}

const INTERNAL = 13;
