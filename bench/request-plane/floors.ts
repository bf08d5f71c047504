/**
 * The floors, as a child process of the benchmark: what nobody who speaks gRPC, verifies Ed25519 and asks Redis
 * in Node can go below. A bare grpc-js server that gives back the bytes of each request, after one verification
 * by node:crypto and one `SET … NX PX` by ioredis where it is told so. It decodes nothing and checks nothing.
 * Usage: node floors.js JOB, a {@link FloorJob} as JSON. Prints its port.
 */
import { createPublicKey, type JsonWebKey, verify } from 'node:crypto';
import { Server, ServerCredentials } from '@grpc/grpc-js';
import { Redis } from 'ioredis';

const CHECK_PATH = '/envoy.service.auth.v3.Authorization/Check';

export interface FloorJob {
  /** One good signature, verified at each request. */
  readonly verify?: { readonly jwk: JsonWebKey; readonly message: string; readonly signature: string };
  readonly redisUrl?: string;
  /** base64: what is answered to every request; default: the request itself. */
  readonly answer?: string;
}

type Step = () => Promise<unknown> | undefined;

function stepsOf({ redisUrl, verify: signed }: FloorJob): readonly Step[] {
  const steps: Step[] = [];
  if (signed !== undefined) {
    const key = createPublicKey({ key: { ...signed.jwk }, format: 'jwk' });
    const message = Buffer.from(signed.message, 'base64url');
    const signature = Buffer.from(signed.signature, 'base64url');
    steps.push(() => {
      if (!verify(null, message, key, signature)) throw new Error('a good signature did not verify');
      return undefined;
    });
  }
  if (redisUrl !== undefined) {
    const redis = new Redis(redisUrl);
    let count = 0;
    steps.push(() => redis.set(`floor:${process.pid}:${count++}`, '1', 'PX', 60_000, 'NX'));
  }
  return steps;
}

type EchoCall = { readonly request: Buffer };
type EchoAnswer = (error: null, value: Buffer) => void;

function serve(steps: readonly Step[], fixedAnswer: Buffer | undefined): void {
  const same = (bytes: Buffer): Buffer => bytes;
  const codec = {
    requestSerialize: same,
    requestDeserialize: same,
    responseSerialize: same,
    responseDeserialize: same,
  };
  const answer = (call: EchoCall, send: EchoAnswer): void => {
    let pending: Promise<unknown> | undefined;
    for (const step of steps) pending = step() ?? pending;
    const bytes = fixedAnswer ?? call.request;
    if (pending === undefined) send(null, bytes);
    else void pending.then(() => send(null, bytes));
  };
  const server = new Server();
  server.addService(
    { Check: { path: CHECK_PATH, requestStream: false, responseStream: false, ...codec } },
    { Check: answer },
  );
  server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, port) => {
    if (error !== null) throw error;
    process.stdout.write(`${JSON.stringify({ port })}\n`);
  });
}

process.on('SIGTERM', () => process.exit(0));
const job: FloorJob = JSON.parse(process.argv[2] ?? '{}');
serve(stepsOf(job), job.answer === undefined ? undefined : Buffer.from(job.answer, 'base64'));
