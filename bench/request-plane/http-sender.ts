/**
 * Sends prepared HTTP/1.1 requests over persistent connections with next to no garbage. A sender that pauses for garbage
 * collection sends what is due in one burst afterwards, and then measures itself.
 */
import { connect, type Socket } from 'node:net';
import { collectGarbage } from '../collect-garbage.ts';
import { byTheClock } from './load.ts';
import { watchForSilence } from './silence.ts';

const CONNECTIONS = 32;
const READ_BYTES = 16 * 1024;
const GOOD_STATUS = 'HTTP/1.1 200 ';
const END_OF_HEADERS = '\r\n\r\n';

export interface HttpRequest {
  readonly path: string;
  readonly authority: string;
  readonly lines: readonly (readonly [name: string, value: string])[];
}

/** A GET; the answer must be a 200 without a body. */
export function encodeGet({ authority, lines, path }: HttpRequest): Buffer {
  const headers = [['host', authority] as const, ...lines].map(([name, value]) => `${name}: ${value}\r\n`);
  return Buffer.from(`GET ${path} HTTP/1.1\r\n${headers.join('')}\r\n`, 'latin1');
}

/** How many a second, so many at a time as there are connections. */
export async function throughputOf(host: string, port: number, requests: readonly Buffer[]): Promise<number> {
  const sender = await HttpSender.connect(host, port, requests);
  const startMs = performance.now();
  for (let index = 0; index < requests.length; index++) sender.send(index);
  await sender.done;
  return requests.length / ((performance.now() - startMs) / 1000);
}

/** Sends by the clock, whether or not answers come: how long each took, in milliseconds. */
export async function latenciesOver(
  host: string,
  port: number,
  requests: readonly Buffer[],
  perSecond: number,
): Promise<readonly number[]> {
  const sender = await HttpSender.connect(host, port, requests);
  collectGarbage();
  await byTheClock(requests.length, perSecond, (index) => sender.send(index));
  await sender.done;
  return [...sender.latenciesMs];
}

class HttpSender {
  readonly latenciesMs: Float64Array;
  readonly done: Promise<void>;
  readonly #requests: readonly Buffer[];
  readonly #sentMs: Float64Array;
  readonly #connections: Connection[] = [];
  readonly #idle: Connection[] = [];
  /** What is to be sent when a connection is free: all below `#next` are sent, all from `#due` are not due yet. */
  #next = 0;
  #due = 0;
  #answered = 0;
  #finish: (error?: Error) => void = () => undefined;

  static async connect(host: string, port: number, requests: readonly Buffer[]): Promise<HttpSender> {
    const sender = new HttpSender(requests);
    for (let count = 0; count < CONNECTIONS; count++) {
      const connection = new Connection(host, port, (index, error) =>
        sender.#ended(connection, index, error),
      );
      sender.#connections.push(connection);
      sender.#idle.push(connection);
    }
    await Promise.all(sender.#connections.map((connection) => connection.opened));
    return sender;
  }

  private constructor(requests: readonly Buffer[]) {
    this.#requests = requests;
    this.latenciesMs = new Float64Array(requests.length);
    this.#sentMs = new Float64Array(requests.length);
    const silence = watchForSilence(() => this.#answered);
    const done = new Promise<void>((resolve, reject) => {
      this.#finish = (error) => {
        if (error === undefined) resolve();
        else reject(error);
      };
    });
    this.done = Promise.race([done, silence.failed]).finally(() => {
      silence.end();
      for (const connection of this.#connections) connection.close();
    });
    this.done.catch(() => undefined);
  }

  /** Sends the requests in order, from the first. */
  send(index: number): void {
    this.#sentMs[index] = performance.now();
    this.#due = index + 1;
    this.#sendDue();
  }

  #sendDue(): void {
    while (this.#next < this.#due) {
      const connection = this.#idle.pop();
      if (connection === undefined) return;
      const index = this.#next++;
      connection.send(index, this.#requests[index] ?? Buffer.alloc(0));
    }
  }

  #ended(connection: Connection, index: number, error?: Error): void {
    if (error !== undefined) {
      this.#finish(error);
      return;
    }
    this.latenciesMs[index] = performance.now() - (this.#sentMs[index] ?? 0);
    this.#answered += 1;
    this.#idle.push(connection);
    if (this.#answered === this.#requests.length) this.#finish();
    else this.#sendDue();
  }
}

type Ended = (index: number, error?: Error) => void;

/** One request at a time. */
class Connection {
  readonly opened: Promise<void>;
  readonly #socket: Socket;
  readonly #ended: Ended;
  #index = 0;
  #answer = '';

  constructor(host: string, port: number, ended: Ended) {
    this.#ended = ended;
    const buffer = Buffer.alloc(READ_BYTES);
    const onread = {
      buffer,
      callback: (length: number) => {
        this.#received(buffer.toString('latin1', 0, length));
        return true;
      },
    };
    this.#socket = connect({ host, port, noDelay: true, onread });
    this.opened = new Promise((resolve, reject) => {
      this.#socket.once('connect', resolve);
      this.#socket.once('error', reject);
    });
    this.#socket.on('error', (error) => ended(this.#index, error));
  }

  send(index: number, request: Buffer): void {
    this.#index = index;
    this.#answer = '';
    this.#socket.write(request);
  }

  close(): void {
    this.#socket.destroy();
  }

  #received(text: string): void {
    this.#answer += text;
    if (this.#answer.length < GOOD_STATUS.length) return;
    if (!this.#answer.startsWith(GOOD_STATUS)) {
      this.#ended(this.#index, new Error(`void run: ${this.#answer.split('\r\n')[0]}`));
    } else if (this.#answer.endsWith(END_OF_HEADERS)) {
      this.#ended(this.#index);
    }
  }
}
