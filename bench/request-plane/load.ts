/** Loads a gRPC server from this process and measures CPU of the other process, requests a second and latency. */
import { setImmediate as lookForAnswers } from 'node:timers/promises';
import { Client, credentials } from '@grpc/grpc-js';
import { collectGarbage } from '../collect-garbage.ts';
import { cpuUsOf } from '../machine.ts';
import { watchForSilence } from './silence.ts';

const CHECK_PATH = '/envoy.service.auth.v3.Authorization/Check';
const IN_FLIGHT = 64;
/** Requests that are waited for at most when they are sent by the clock; more are a server that does not keep up. */
const MOST_WAITING = 20_000;

export interface GrpcTarget {
  readonly pid: number;
  /** `HOST:PORT` */
  readonly address: string;
  /** Whether an answer is the one that is wanted; a run with any other is void. */
  readonly isGood: (answer: Buffer) => boolean;
}

export interface Cost {
  /** CPU of the server for one request. */
  readonly cpuUs: number;
  readonly perSecond: number;
}

/** Sends the first part to warm up, then measures over the rest, so many in flight as the server answers. */
export async function costOf(target: GrpcTarget, requests: readonly Buffer[]): Promise<Cost> {
  return await withClient(target, async (client) => {
    const warmUp = Math.floor(requests.length / 5);
    await sendAll(client, requests.slice(0, warmUp), target.isGood);
    const count = requests.length - warmUp;
    const [startUs, startMs] = [cpuUsOf(target.pid), performance.now()];
    await sendAll(client, requests.slice(warmUp), target.isGood);
    const seconds = (performance.now() - startMs) / 1000;
    return { cpuUs: (cpuUsOf(target.pid) - startUs) / count, perSecond: count / seconds };
  });
}

/** Sends by the clock, whether or not answers come: how long each took, in milliseconds. */
export async function latenciesAt(
  target: GrpcTarget,
  requests: readonly Buffer[],
  perSecond: number,
): Promise<number[]> {
  return await withClient(target, async (client) => {
    const latenciesMs: number[] = [];
    const sending: Promise<void>[] = [];
    collectGarbage();
    await byTheClock(requests.length, perSecond, (index) => {
      const sentMs = performance.now();
      const request = requests[index] ?? Buffer.alloc(0);
      if (index - latenciesMs.length > MOST_WAITING) throw new Error('void run: the server does not keep up');
      const answered = send(client, request).then((answer) => {
        if (!target.isGood(answer)) throw voidRun(answer);
        latenciesMs.push(performance.now() - sentMs);
      });
      answered.catch(() => undefined);
      sending.push(answered);
    });
    await Promise.all(sending);
    return latenciesMs;
  });
}

/** Node's timers go by whole milliseconds, and what is due in one would be sent at once. */
const NAP_MS = 0.2;
const nobodyWakesIt = new Int32Array(new SharedArrayBuffer(4));

/** Calls back `count` times, evenly spread in time; what is late is made up for. */
export async function byTheClock(
  count: number,
  perSecond: number,
  send: (index: number) => void,
): Promise<void> {
  const startMs = performance.now();
  let sent = 0;
  while (sent < count) {
    const due = Math.min(count, Math.floor(((performance.now() - startMs) / 1000) * perSecond));
    for (; sent < due; sent += 1) send(sent);
    // Sleeps instead of spinning: the measured process needs the cores.
    Atomics.wait(nobodyWakesIt, 0, 0, NAP_MS);
    await lookForAnswers();
  }
}

async function withClient<T>(target: GrpcTarget, use: (client: Client) => Promise<T>): Promise<T> {
  const client = new Client(target.address, credentials.createInsecure());
  const silence = watchForSilence(() => answers);
  try {
    return await Promise.race([use(client), silence.failed]);
  } finally {
    silence.end();
    client.close();
  }
}

let answers = 0;

async function sendAll(
  client: Client,
  requests: readonly Buffer[],
  isGood: GrpcTarget['isGood'],
): Promise<void> {
  let next = 0;
  const worker = async () => {
    for (let request = requests[next++]; request !== undefined; request = requests[next++]) {
      const answer = await send(client, request);
      if (!isGood(answer)) throw voidRun(answer);
    }
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, worker));
}

function voidRun(answer: Buffer): Error {
  const problem = /"reason":"[^"]*"(?:,"detail":"[^"]*")?/.exec(answer.toString('latin1'))?.[0];
  return new Error(`void run: a request was not answered as it should (${problem ?? 'allowed'})`);
}

const same = (bytes: Buffer): Buffer => bytes;

function send(client: Client, request: Buffer): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    client.makeUnaryRequest(CHECK_PATH, same, same, request, (error, answer) => {
      answers += 1;
      if (error !== null) reject(error);
      else resolve(answer ?? Buffer.alloc(0));
    });
  });
}
