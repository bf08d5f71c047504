/**
 * Calls a SPIFFE Workload API, and follows its streams across restarts of the agent.
 * Sources: SPIFFE_Workload_API section 4; SPIFFE_Workload_Endpoint sections 3, 6 and appendix A.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { type GrpcConnection, GrpcError, grpcService } from '../../process/grpc/grpc-client.ts';
import { Backoff } from '../../process/program/backoff.ts';
import { WORKLOAD_SOCKET_RULE, workloadSocketTarget } from './workload-socket.ts';

export interface X509SvidMessage {
  readonly spiffe_id: string;
  readonly x509_svid: Buffer;
  readonly x509_svid_key: Buffer;
  readonly bundle: Buffer;
  readonly hint: string;
}

export interface X509SvidResponse {
  readonly svids: readonly X509SvidMessage[];
  readonly federated_bundles: Readonly<Record<string, Buffer>>;
}

export interface BundlesResponse {
  readonly bundles: Readonly<Record<string, Buffer>>;
}

export interface JwtSvidResponse {
  readonly svids: readonly { readonly spiffe_id: string; readonly svid: string; readonly hint: string }[];
}

/** A type and not an interface, because it must have an index signature. */
export type WorkloadMethods = {
  readonly FetchX509SVID: { readonly request: object; readonly response: X509SvidResponse };
  readonly FetchX509Bundles: { readonly request: object; readonly response: BundlesResponse };
  readonly FetchJWTBundles: { readonly request: object; readonly response: BundlesResponse };
  readonly FetchJWTSVID: {
    readonly request: { readonly audience: readonly string[]; readonly spiffe_id: string };
    readonly response: JwtSvidResponse;
  };
};

/** A closed set of stable codes. Source: docs/operate/cli.md "Errors and exit codes". */
export type WorkloadApiProblemCode =
  /** No agent answers. The call is retried. */
  | 'workload_api_unavailable'
  /** The agent has no identity for this process yet. The call is retried. */
  | 'workload_api_no_identity'
  /** The agent does not support the call. It is retried slowly, because an agent may be upgraded. */
  | 'workload_api_refused'
  /** A message without a mandatory field, or with an unusable one. Of several bundles only an unusable one is skipped. */
  | 'workload_api_malformed'
  | 'workload_api_address';

/** Foreseeable failure of the Workload API. */
export class WorkloadApiError extends Error {
  override readonly name = 'WorkloadApiError';
  readonly code: WorkloadApiProblemCode;

  constructor(code: WorkloadApiProblemCode, message: string) {
    super(message);
    this.code = code;
  }
}

/** Opens a connection. @throws WorkloadApiError `workload_api_address` */
export function connectWorkloadApi(address: string): GrpcConnection<WorkloadMethods> {
  const target = workloadSocketTarget(address);
  if (target === undefined) {
    throw new WorkloadApiError(
      'workload_api_address',
      `the Workload API's address must be ${WORKLOAD_SOCKET_RULE}`,
    );
  }
  // Loaded on first use, because most commands never call a Workload API.
  open ??= grpcService<WorkloadMethods>({
    file: 'spiffe/workload.proto',
    service: 'SpiffeWorkloadAPI',
    // Keeps other programs from being used to reach the agent (SPIFFE_Workload_Endpoint section 3).
    metadata: { 'workload.spiffe.io': 'true' },
    keepalive: KEEPALIVE,
  });
  return open(target);
}
/** A server with gRPC's defaults closes connections that ask more often than each five minutes (gRFC A8). */
const KEEPALIVE = { timeMs: 6 * 60_000, timeoutMs: 20_000 };
let open: ((target: string) => GrpcConnection<WorkloadMethods>) | undefined;

type StreamMethod = 'FetchX509SVID' | 'FetchX509Bundles' | 'FetchJWTBundles';

export interface FollowedStream<M extends StreamMethod> {
  /** @throws WorkloadApiError `workload_api_malformed`; the stream continues */
  readonly onMessage: (message: WorkloadMethods[M]['response']) => void;
  /** Called at each failed attempt, and for each malformed message. */
  readonly onError: (error: WorkloadApiError) => void;
  readonly signal: AbortSignal;
  /** Wait after a call that the agent does not support. Default: a minute. */
  readonly refusedRetryMs?: number | undefined;
}

const REFUSED_RETRY_MS = 60_000;
const BACKOFF = { firstMs: 200, maxMs: 1_000 };

/**
 * Follows a stream until the signal aborts. When the stream ends, it reconnects after at most a second, or after a
 * minute when the agent does not support the call.
 * @throws WorkloadApiError `workload_api_address`, at once
 */
export async function followStream<M extends StreamMethod>(
  address: string,
  method: M,
  stream: FollowedStream<M>,
): Promise<void> {
  const { onError, refusedRetryMs = REFUSED_RETRY_MS, signal } = stream;
  const backoff = new Backoff(BACKOFF);
  while (!signal.aborted) {
    const attempt = await readStream(address, method, stream);
    if (signal.aborted) return;
    onError(attempt.error);
    if (attempt.receivedMessages) backoff.reset();
    const backoffMs = backoff.failed();
    const waitMs = attempt.error.code === 'workload_api_refused' ? refusedRetryMs : backoffMs;
    await delay(waitMs, undefined, { signal }).catch(() => {});
  }
}

async function readStream<M extends StreamMethod>(
  address: string,
  method: M,
  { onMessage, onError, signal }: FollowedStream<M>,
): Promise<{ readonly error: WorkloadApiError; readonly receivedMessages: boolean }> {
  const connection = connectWorkloadApi(address);
  let receivedMessages = false;
  const read = (message: WorkloadMethods[M]['response']) => {
    receivedMessages = true;
    try {
      onMessage(message);
    } catch (error) {
      onError(streamProblem(error));
    }
  };
  try {
    await connection.stream(method, {}, read, { signal });
    return { error: unavailable(), receivedMessages };
  } catch (error) {
    return { error: streamProblem(error), receivedMessages };
  } finally {
    connection.close();
  }
}

/** Even an unforeseen error does not stop following. */
function streamProblem(error: unknown): WorkloadApiError {
  if (error instanceof WorkloadApiError || error instanceof GrpcError) return asWorkloadApiError(error);
  const name = error instanceof Error ? error.name : typeof error;
  return new WorkloadApiError(
    'workload_api_malformed',
    `a message of the SPIFFE agent caused an error (${name})`,
  );
}

const INVALID_ARGUMENT = 3;
const PERMISSION_DENIED = 7;
const UNIMPLEMENTED = 12;

/** @throws the error itself when it is an unforeseen one */
export function asWorkloadApiError(error: unknown): WorkloadApiError {
  if (error instanceof WorkloadApiError) return error;
  if (!(error instanceof GrpcError)) throw error;
  if (error.code === PERMISSION_DENIED) {
    const message =
      'the SPIFFE agent has no identity for this process; is there a registration entry for it?';
    return new WorkloadApiError('workload_api_no_identity', message);
  }
  if (error.code === INVALID_ARGUMENT || error.code === UNIMPLEMENTED) {
    return new WorkloadApiError(
      'workload_api_refused',
      `the SPIFFE agent refused the call (${error.message})`,
    );
  }
  return unavailable();
}

function unavailable(): WorkloadApiError {
  return new WorkloadApiError(
    'workload_api_unavailable',
    'no SPIFFE agent answers at the Workload API socket',
  );
}
