/** A unary call of an unmodified gRPC client, through an egress Envoy that signs, a gateway and the verifier, to a gRPC server. */
import {
  Client,
  credentials,
  Metadata,
  Server,
  ServerCredentials,
  type ServiceError,
  status,
} from '@grpc/grpc-js';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { makeCertificates, type TestCertificates } from '../../support/harness/certificates.ts';
import type { RunningEnvoy } from '../../support/harness/envoy.ts';
import type { Upstream } from '../../support/harness/upstream.ts';
import { useEnvironment } from '../../support/site/environment.ts';
import { AUTHORITY } from '../../support/site/routes.ts';
import { LANE_ENVOYS } from '../lane-envoys.ts';
import { type SignerProcess, startEgressEnvoy, startEgressParties } from './egress-gateway.ts';

/** A route of the site whose POST binds the body; any path can be a method's. */
const METHOD = '/v1/orders';
const UNKNOWN_METHOD = '/v1/nothing';

const environment = useEnvironment(['usual']);
let certificates: TestCertificates;
beforeAll(async () => {
  certificates = await makeCertificates(AUTHORITY, 'spiffe://shop.example/ns/prod/sa/checkout');
});
afterAll(() => certificates.remove());

const asItIs = (bytes: Buffer): Buffer => bytes;

interface Call {
  readonly subject: readonly unknown[];
  readonly request: string;
}

/** Answers what it got, in capitals, and a trailer. */
async function startGrpcServer(calls: Call[]): Promise<Upstream> {
  const server = new Server();
  const method = { path: METHOD, requestStream: false, responseStream: false } as const;
  const serialization = {
    requestSerialize: asItIs,
    requestDeserialize: asItIs,
    responseSerialize: asItIs,
    responseDeserialize: asItIs,
  };
  server.addService(
    { create: { ...method, ...serialization } },
    {
      create: (
        call: { readonly request: Buffer; readonly metadata: Metadata },
        done: (error: null, answer: Buffer, trailer: Metadata) => void,
      ) => {
        calls.push({ subject: call.metadata.get('x-proofgate-subject'), request: call.request.toString() });
        const trailer = new Metadata();
        trailer.set('x-served', 'once');
        done(null, Buffer.from(call.request.toString().toUpperCase()), trailer);
      },
    },
  );
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
  return {
    host: '127.0.0.1',
    port,
    requests: [],
    clear: () => {},
    stop: async () => server.forceShutdown(),
  };
}

describe.each(LANE_ENVOYS)('behind an egress Envoy %s', (version) => {
  const calls: Call[] = [];
  let signer: SignerProcess;
  let egress: RunningEnvoy;
  let client: Client;
  beforeAll(async () => {
    const upstream = { upstream: { protocol: 'h2c' as const }, openUpstream: () => startGrpcServer(calls) };
    const parties = await startEgressParties(environment, version, certificates, upstream);
    ({ signer } = parties);
    egress = await startEgressEnvoy(version, { ...parties, certificates });
    const authority = { 'grpc.default_authority': AUTHORITY };
    client = new Client(`${egress.host}:${egress.port}`, credentials.createInsecure(), authority);
  });
  afterAll(async () => {
    client.close();
    await egress.stop();
    await signer.stop();
  });

  const unary = (method: string) =>
    new Promise<{ readonly code: number; readonly answer?: string; readonly served?: unknown }>((resolve) => {
      let served: unknown;
      client
        .makeUnaryRequest(
          method,
          asItIs,
          asItIs,
          Buffer.from('one order'),
          (error: ServiceError | null, answer?: Buffer) =>
            // The trailers come before it is called.
            setImmediate(() =>
              resolve({
                code: error?.code ?? status.OK,
                ...(answer === undefined ? {} : { answer: answer.toString(), served }),
              }),
            ),
        )
        .on('status', ({ metadata }) => {
          served = metadata.get('x-served')[0];
        });
    });

  it('a unary call arrives once, verified, and its answer and trailers come back', async () => {
    expect(await unary(METHOD)).toEqual({ code: status.OK, answer: 'ONE ORDER', served: 'once' });
    expect(calls).toEqual([{ subject: ['client:billing'], request: 'one order' }]);
  });

  it('a method without a route is not called', async () => {
    calls.length = 0;
    expect((await unary(UNKNOWN_METHOD)).code).not.toBe(status.OK);
    expect(calls).toEqual([]);
  });
});
