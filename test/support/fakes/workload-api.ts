/**
 * A Workload API that says what a test tells it, on a Unix socket. It checks the metadata that SPIFFE_Workload_Endpoint
 * section 3 demands.
 */
import { rm } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import {
  type Metadata,
  Server,
  ServerCredentials,
  type ServerUnaryCall,
  type ServerWritableStream,
  type sendUnaryData,
  status,
} from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import type { IssuedSvid, SpiffeAuthority } from './spiffe-authority.ts';

export interface ServedSvid {
  readonly spiffeId: string;
  readonly svid: IssuedSvid;
  readonly authority: SpiffeAuthority;
  readonly hint?: string;
}

/** Messages as in `proto/spiffe/workload.proto`. */
export interface WorkloadApiMessages {
  readonly x509Svids: object;
  readonly x509Bundles: object;
  readonly jwtBundles: object;
  /** Called with the audiences and the SPIFFE ID of the request. */
  readonly jwtSvids: (audiences: readonly string[], spiffeId: string) => Promise<object>;
}

type StreamName = 'x509Svids' | 'x509Bundles' | 'jwtBundles';
type Stream = ServerWritableStream<object, object>;

const PROTO = fileURLToPath(new URL('../../../proto', import.meta.url));

export class FakeWorkloadApi {
  readonly socketPath: string;
  #messages: Partial<WorkloadApiMessages> = {};
  /** Status of each call in place of messages. */
  #failure: number | undefined;
  #server: Server | undefined;
  readonly #streams: Record<StreamName, Set<Stream>> = {
    x509Svids: new Set(),
    x509Bundles: new Set(),
    jwtBundles: new Set(),
  };
  /** Calls so far, refused ones included. */
  calls = 0;

  constructor(socketPath: string) {
    this.socketPath = socketPath;
  }

  /** As in `SPIFFE_ENDPOINT_SOCKET`. */
  get address(): string {
    return `unix://${this.socketPath}`;
  }

  async start(): Promise<this> {
    const server = new Server();
    const loaded = loadSync('spiffe/workload.proto', {
      keepCase: true,
      defaults: true,
      includeDirs: [PROTO],
    });
    server.addService(loaded.SpiffeWorkloadAPI as never, {
      FetchX509SVID: (call: Stream) => this.#open('x509Svids', call),
      FetchX509Bundles: (call: Stream) => this.#open('x509Bundles', call),
      FetchJWTBundles: (call: Stream) => this.#open('jwtBundles', call),
      FetchJWTSVID: (call: ServerUnaryCall<JwtRequest, object>, answer: sendUnaryData<object>) =>
        void this.#jwtSvid(call, answer),
    });
    await rm(this.socketPath, { force: true });
    await new Promise<void>((resolve, reject) => {
      server.bindAsync(`unix:${this.socketPath}`, ServerCredentials.createInsecure(), (error) =>
        error === null ? resolve() : reject(error),
      );
    });
    this.#server = server;
    return this;
  }

  /** Stops like an agent that ends: open streams break. */
  async stop(): Promise<void> {
    this.#server?.forceShutdown();
    for (const streams of Object.values(this.#streams)) streams.clear();
    await rm(this.socketPath, { force: true });
  }

  /** Sends messages to open streams, and to those that are opened later. */
  serve(messages: Partial<WorkloadApiMessages>): void {
    this.#failure = undefined;
    this.#messages = { ...this.#messages, ...messages };
    for (const name of ['x509Svids', 'x509Bundles', 'jwtBundles'] as const) {
      const message = messages[name];
      if (message === undefined) continue;
      for (const stream of this.#streams[name]) stream.write(message);
    }
  }

  /** These SVIDs with the bundles of their authorities, on all streams, and JWT-SVIDs for the same IDs. */
  serveSvids(svids: readonly ServedSvid[], federated: readonly SpiffeAuthority[] = []): void {
    const authorities = [...svids.map(({ authority }) => authority), ...federated];
    this.serve({
      x509Svids: x509SvidResponse(svids, federated),
      x509Bundles: {
        bundles: mapOf(authorities, ({ certificateDer }) => certificateDer),
      },
      jwtBundles: {
        bundles: mapOf(authorities, (authority) => Buffer.from(JSON.stringify(authority.bundleDocument()))),
      },
      jwtSvids: async (audiences, wanted) => ({
        svids: await Promise.all(
          svids
            .filter(({ spiffeId }) => wanted === '' || spiffeId === wanted)
            .map(async ({ authority, hint = '', spiffeId }) => ({
              spiffe_id: spiffeId,
              svid: await authority.issueJwtSvid(spiffeId, audiences),
              hint,
            })),
        ),
      }),
    });
  }

  /** Ends open streams with the status, and answers every call with it until something is served. */
  fail(code: number): void {
    this.#failure = code;
    for (const streams of Object.values(this.#streams)) {
      for (const stream of streams) stream.emit('error', { code, details: '' });
      streams.clear();
    }
  }

  #open(name: StreamName, call: Stream): void {
    const code = this.#refusal(call.metadata);
    if (code !== undefined) {
      call.emit('error', { code, details: '' });
      return;
    }
    this.#streams[name].add(call);
    call.on('cancelled', () => this.#streams[name].delete(call));
    const message = this.#messages[name];
    if (message !== undefined) call.write(message);
  }

  async #jwtSvid(call: ServerUnaryCall<JwtRequest, object>, answer: sendUnaryData<object>): Promise<void> {
    const code = this.#refusal(call.metadata);
    const { audience, spiffe_id } = call.request;
    if (code !== undefined) answer({ code, details: '' });
    else answer(null, (await this.#messages.jwtSvids?.(audience, spiffe_id)) ?? { svids: [] });
  }

  #refusal(metadata: Metadata): number | undefined {
    this.calls += 1;
    return metadata.get('workload.spiffe.io')[0] === 'true' ? this.#failure : status.INVALID_ARGUMENT;
  }
}

interface JwtRequest {
  readonly audience: readonly string[];
  readonly spiffe_id: string;
}

/** A message of `FetchX509SVID`. */
export function x509SvidResponse(
  svids: readonly ServedSvid[],
  federated: readonly SpiffeAuthority[] = [],
): { readonly svids: readonly object[]; readonly federated_bundles: object } {
  return {
    svids: svids.map(({ authority, hint = '', spiffeId, svid }) => ({
      spiffe_id: spiffeId,
      x509_svid: Buffer.concat(svid.chainDer),
      x509_svid_key: svid.privateKey.export({ type: 'pkcs8', format: 'der' }),
      bundle: authority.certificateDer,
      hint,
    })),
    federated_bundles: mapOf(federated, ({ certificateDer }) => certificateDer),
  };
}

function mapOf(
  authorities: readonly SpiffeAuthority[],
  value: (authority: SpiffeAuthority) => Buffer,
): object {
  return Object.fromEntries(
    authorities.map((authority) => [`spiffe://${authority.trustDomain}`, value(authority)]),
  );
}
