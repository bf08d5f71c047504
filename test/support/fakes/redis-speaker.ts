/**
 * A scripted server that speaks RESP 2 on a free loopback port, for states that real servers rarely reach: outdated views,
 * epochs that disagree, answers that never come.
 */
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { freePort } from '../harness/free-port.ts';
import { RedisErrorReply, type RedisReply } from '../harness/redis-reply.ts';

/** `SILENCE`: neither this answer nor any later one on that connection is sent. */
export type SpokenReply = RedisReply | RedisErrorReply | typeof SILENCE;
export const SILENCE = Symbol('silence');

/** Command and words as received. A promised answer comes late, and later answers wait for it, as with Redis. */
export type Spoken = (words: readonly string[]) => SpokenReply | Promise<SpokenReply>;

const OK = '+OK\r\n';
const OF_THE_CONNECTION: ReadonlyMap<string, string> = new Map([
  ['PING', '+PONG\r\n'],
  ['HELLO', OK],
  ['CLIENT', OK],
  ['SELECT', OK],
  ['QUIT', OK],
]);

export class RedisSpeaker {
  readonly port: number;
  /** Commands received, without greetings and logins, in order. */
  readonly asked: (readonly string[])[] = [];
  /** Replace it to change the answers. */
  spoken: Spoken;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(server: Server, spoken: Spoken) {
    this.#server = server;
    this.spoken = spoken;
    this.port = (server.address() as AddressInfo).port;
    server.on('connection', (socket) => this.#serve(socket));
  }

  static async start(spoken: Spoken, port?: number): Promise<RedisSpeaker> {
    const server = createServer();
    server.listen(port ?? (await freePort()), '127.0.0.1');
    await once(server, 'listening');
    return new RedisSpeaker(server, spoken);
  }

  get connections(): number {
    return this.#sockets.size;
  }

  get address(): { readonly host: string; readonly port: number } {
    return { host: '127.0.0.1', port: this.port };
  }

  /** Number of commands that begin with these words. */
  countOf(...first: readonly string[]): number {
    return this.asked.filter((words) => first.every((word, at) => words[at] === word)).length;
  }

  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    if (!this.#server.listening) return;
    this.#server.close();
    await once(this.#server, 'close');
  }

  #serve(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on('close', () => this.#sockets.delete(socket));
    socket.on('error', () => undefined);
    let pending = '';
    let answered = Promise.resolve();
    socket.on('data', (chunk) => {
      pending += chunk.toString('latin1');
      for (let command = takeCommand(pending); command !== undefined; command = takeCommand(pending)) {
        pending = pending.slice(command.length);
        const { words } = command;
        const reply = this.#replyTo(words);
        answered = answered.then(() => this.#answer(socket, words, reply));
      }
    });
  }

  #replyTo(words: readonly string[]): SpokenReply | Promise<SpokenReply> {
    if (OF_THE_CONNECTION.has(words[0]?.toUpperCase() ?? '')) return null;
    this.asked.push(words);
    return this.spoken(words);
  }

  async #answer(
    socket: Socket,
    [command = '']: readonly string[],
    promised: SpokenReply | Promise<SpokenReply>,
  ): Promise<void> {
    const own = OF_THE_CONNECTION.get(command.toUpperCase());
    if (own !== undefined) {
      socket.write(own);
      if (command.toUpperCase() === 'QUIT') socket.end();
      return;
    }
    const reply = await promised;
    if (reply === SILENCE) return new Promise(() => undefined);
    if (socket.writable) socket.write(encode(reply));
  }
}

/** Formats the fields of `INFO` and `CLUSTER INFO`. */
export function infoText(fields: { readonly [name: string]: string | number }): string {
  return Object.entries(fields)
    .map(([name, value]) => `${name}:${value}\r\n`)
    .join('');
}

interface Command {
  readonly words: readonly string[];
  readonly length: number;
}

/** Undefined until the command is complete. An inline command is one line of words. */
function takeCommand(text: string): Command | undefined {
  const end = text.indexOf('\r\n');
  if (end < 0) return undefined;
  if (!text.startsWith('*')) return { words: text.slice(0, end).split(' '), length: end + 2 };
  const words: string[] = [];
  let at = end + 2;
  for (let left = Number(text.slice(1, end)); left > 0; left -= 1) {
    const lineEnd = text.indexOf('\r\n', at);
    if (lineEnd < 0) return undefined;
    const start = lineEnd + 2;
    const length = Number(text.slice(at + 1, lineEnd));
    if (text.length < start + length + 2) return undefined;
    words.push(text.slice(start, start + length));
    at = start + length + 2;
  }
  return { words, length: at };
}

function encode(reply: Exclude<SpokenReply, typeof SILENCE>): string {
  if (reply === null) return '$-1\r\n';
  if (reply instanceof RedisErrorReply) return `-${reply.message}\r\n`;
  if (typeof reply === 'number') return `:${reply}\r\n`;
  if (typeof reply === 'string') return `$${Buffer.byteLength(reply)}\r\n${reply}\r\n`;
  return `*${reply.length}\r\n${reply.map(encode).join('')}`;
}
