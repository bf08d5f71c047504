/** Load on a gRPC server from this process, and the CPU that the other process spent on it. */
import { Client, credentials } from '@grpc/grpc-js';
import { cpuUsOf } from './process-cpu.ts';

const CHECK_PATH = '/envoy.service.auth.v3.Authorization/Check';
const IN_FLIGHT = 64;

export interface GrpcTarget {
  readonly pid: number;
  /** `HOST:PORT` */
  readonly address: string;
  /** Whether an answer is the one that is wanted; a run with any other is void. */
  readonly isGood: (answer: Buffer) => boolean;
}

/** Sends the first part to warm up, then measures over the rest: microseconds of CPU a request. */
export async function cpuUsPerRequest(target: GrpcTarget, requests: readonly Buffer[]): Promise<number> {
  const client = new Client(target.address, credentials.createInsecure());
  try {
    const warmUp = Math.floor(requests.length / 5);
    await sendAll(client, requests.slice(0, warmUp), target.isGood);
    const startUs = cpuUsOf(target.pid);
    await sendAll(client, requests.slice(warmUp), target.isGood);
    return (cpuUsOf(target.pid) - startUs) / (requests.length - warmUp);
  } finally {
    client.close();
  }
}

async function sendAll(
  client: Client,
  requests: readonly Buffer[],
  isGood: GrpcTarget['isGood'],
): Promise<void> {
  let next = 0;
  const worker = async () => {
    for (let request = requests[next++]; request !== undefined; request = requests[next++]) {
      if (!isGood(await send(client, request))) throw new Error('void run: a request was not allowed');
    }
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, worker));
}

const same = (bytes: Buffer): Buffer => bytes;

function send(client: Client, request: Buffer): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    client.makeUnaryRequest(CHECK_PATH, same, same, request, (error, answer) => {
      if (error !== null) reject(error);
      else resolve(answer ?? Buffer.alloc(0));
    });
  });
}
