/**
 * The floors, as a child process of the benchmark: what nobody who speaks gRPC, verifies Ed25519 and asks
 * Redis in Node can go below. Usage: node floors.js echo | verify | redis URL
 * `echo` serves bare unary gRPC and prints its port; the others count and print microseconds of CPU an operation.
 */
import { createPublicKey, verify } from 'node:crypto';
import { createInterface } from 'node:readline';
import { Server, ServerCredentials } from '@grpc/grpc-js';
import { Redis } from 'ioredis';

const CHECK_PATH = '/envoy.service.auth.v3.Authorization/Check';
const IN_FLIGHT = 64;

/** Bytes in, the same bytes out: no decoding, nothing done. */
function serveEcho(): void {
  const same = (bytes: Buffer): Buffer => bytes;
  const codec = {
    requestSerialize: same,
    requestDeserialize: same,
    responseSerialize: same,
    responseDeserialize: same,
  };
  const server = new Server();
  server.addService(
    { Check: { path: CHECK_PATH, requestStream: false, responseStream: false, ...codec } },
    {
      Check: (call: { request: Buffer }, answer: (error: null, value: Buffer) => void) =>
        answer(null, call.request),
    },
  );
  server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (_error, port) => print({ port }));
  process.on('SIGTERM', () => process.exit(0));
}

interface VerifyJob {
  readonly count: number;
  readonly jwk: Record<string, string>;
  readonly message: string;
  readonly signature: string;
}

async function countVerifications(): Promise<void> {
  for await (const line of createInterface({ input: process.stdin })) {
    const job: VerifyJob = JSON.parse(line);
    const key = createPublicKey({ key: job.jwk, format: 'jwk' });
    const message = Buffer.from(job.message, 'base64url');
    const signature = Buffer.from(job.signature, 'base64url');
    const one = () => {
      if (!verify(null, message, key, signature)) throw new Error('a good signature did not verify');
    };
    for (let i = 0; i < job.count / 10; i++) one();
    const start = process.cpuUsage();
    for (let i = 0; i < job.count; i++) one();
    print({ cpuUs: cpuUsSince(start) / job.count });
  }
}

async function countRedisSets(url: string): Promise<void> {
  const redis = new Redis(url);
  let next = 0;
  const setMany = async (count: number) => {
    const end = next + count;
    const worker = async () => {
      while (next < end) {
        next += 1;
        await redis.set(`floor:${process.pid}:${next}`, '1', 'PX', 60_000, 'NX');
      }
    };
    await Promise.all(Array.from({ length: IN_FLIGHT }, worker));
  };
  for await (const line of createInterface({ input: process.stdin })) {
    const { count }: { count: number } = JSON.parse(line);
    await setMany(count / 5);
    const start = process.cpuUsage();
    await setMany(count);
    print({ cpuUs: cpuUsSince(start) / count });
  }
  redis.disconnect();
}

function cpuUsSince(start: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(start);
  return user + system;
}

function print(value: object): void {
  process.stdout.write(`${JSON.stringify(value)}\n`);
}

const [floor, argument = ''] = process.argv.slice(2);
if (floor === 'echo') serveEcho();
else if (floor === 'verify') await countVerifications();
else if (floor === 'redis') await countRedisSets(argument);
else throw new Error('usage: floors.js echo | verify | redis URL');
