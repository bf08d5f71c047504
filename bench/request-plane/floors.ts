/**
 * The floors, as a child process of the benchmark: the least that a server in Node costs that speaks gRPC, verifies Ed25519 and
 * asks Redis. A bare grpc-js server returns the bytes of each request, after one verification and one `SET … NX PX` by ioredis
 * when the job asks for them. It decodes and checks nothing.
 * Usage: node floors.js JOB, a {@link FloorJob} as JSON. Prints its port.
 */
import { generateKeyPairSync, randomBytes, sign, verify } from 'node:crypto';
import { Server, ServerCredentials } from '@grpc/grpc-js';
import { Redis } from 'ioredis';
import sodium from 'sodium-native';

const CHECK_PATH = '/envoy.service.auth.v3.Authorization/Check';

/** As many keys as there are callers in a measurement. */
const KEYS = 100;
/** One signature verified again and again would cost some 5 % less than different ones: the processor learns its way. */
const SIGNATURES = 1_000;

export interface FloorJob {
  /** One good signature over so many bytes is verified at each request, another one each time. */
  readonly verify?: { readonly by: 'node:crypto' | 'libsodium'; readonly messageBytes: number };
  readonly redisUrl?: string;
  /** base64: what is answered to every request; default: the request itself. */
  readonly answer?: string;
}

type Step = () => Promise<unknown> | undefined;

function stepsOf({ redisUrl, verify: verification }: FloorJob): readonly Step[] {
  const steps: Step[] = [];
  if (verification !== undefined) {
    const holds = verifications(verification);
    let count = 0;
    steps.push(() => {
      if (holds[count++ % holds.length]?.() !== true) throw new Error('a good signature did not verify');
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

function verifications({ by, messageBytes }: NonNullable<FloorJob['verify']>): readonly (() => boolean)[] {
  const keys = Array.from({ length: KEYS }, () => generateKeyPairSync('ed25519'));
  return Array.from({ length: SIGNATURES / KEYS }, () => keys).flatMap((pairs) =>
    pairs.map(({ privateKey, publicKey }) => {
      const message = randomBytes(messageBytes);
      const signature = sign(null, message, privateKey);
      const point = Buffer.from(publicKey.export({ format: 'jwk' }).x ?? '', 'base64url');
      return by === 'libsodium'
        ? () => sodium.crypto_sign_verify_detached(signature, message, point)
        : () => verify(null, message, publicKey, signature);
    }),
  );
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
