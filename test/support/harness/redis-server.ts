/** A real redis-server on a free loopback port, for tests. It keeps nothing on disk: after a restart it is empty. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { waitUntil } from '../wait.ts';
import { freePort } from './free-port.ts';
import { askRedis, type RedisReply } from './redis-reply.ts';

/** A program of util-linux with which the server ends when this process ends for any reason. */
const SETPRIV = '/usr/bin/setpriv';

export interface TestRedisOptions {
  /** Further command line arguments, as in `--requirepass`, `secret`. */
  readonly settings?: readonly string[];
  /** Default: a free one. */
  readonly port?: number;
  /** Lines of the file that a Sentinel keeps its knowledge in: the server is a Sentinel. */
  readonly sentinel?: readonly string[];
  /** Added to this process's environment. */
  readonly env?: Readonly<Record<string, string>>;
}

export class TestRedisServer {
  readonly port: number;
  readonly #directory: string;
  readonly #options: TestRedisOptions;
  #process: ChildProcess | undefined;

  private constructor(port: number, directory: string, options: TestRedisOptions) {
    this.port = port;
    this.#directory = directory;
    this.#options = options;
  }

  /** Starts a server; `settings` are further command line arguments, as in `--requirepass`, `secret`. */
  static start(...settings: readonly string[]): Promise<TestRedisServer> {
    return TestRedisServer.startWith({ settings });
  }

  static async startWith(options: TestRedisOptions): Promise<TestRedisServer> {
    const directory = await mkdtemp(join(tmpdir(), 'proofgate-redis-'));
    const server = new TestRedisServer(options.port ?? (await freePort()), directory, options);
    try {
      if (options.sentinel !== undefined) {
        await writeFile(server.#sentinelFile, `${options.sentinel.join('\n')}\n`);
      }
      await server.startAgain();
    } catch (error) {
      await server.stop();
      throw error;
    }
    return server;
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}`;
  }

  /** Restarts on the same port, without data. */
  async startAgain(): Promise<void> {
    const kind = this.#options.sentinel === undefined ? [] : [this.#sentinelFile, '--sentinel'];
    const fixed = ['--port', `${this.port}`, '--bind', '127.0.0.1', '--dir', this.#directory];
    const memoryOnly = ['--save', '', '--appendonly', 'no', '--logfile', this.#logFile];
    const args = [...kind, ...fixed, ...memoryOnly, ...(this.#options.settings ?? [])];
    const [command, ...before] = existsSync(SETPRIV)
      ? [SETPRIV, '--pdeathsig', 'KILL', 'redis-server']
      : ['redis-server'];
    const env = { ...process.env, ...this.#options.env };
    const started = spawn(command, [...before, ...args], { stdio: 'ignore', env });
    this.#process = started;
    await waitUntil(async () => {
      if (started.exitCode !== null)
        throw new Error(`redis-server ended at start: ${await this.#lastWords()}`);
      return (await this.command('PING').catch(() => '')) !== '';
    });
  }

  /** The file in which a Sentinel keeps its state across restarts. */
  get #sentinelFile(): string {
    return join(this.#directory, 'sentinel.conf');
  }

  get #logFile(): string {
    return join(this.#directory, 'redis.log');
  }

  async #lastWords(): Promise<string> {
    const log = await readFile(this.#logFile, 'utf8').catch(() => 'it wrote no log');
    return log.trimEnd().split('\n').slice(-2).join('; ');
  }

  get isRunning(): boolean {
    return this.#process !== undefined;
  }

  /** Ends the server as a crash would; its clients lose their connections. */
  async kill(): Promise<void> {
    const running = this.#process;
    if (running === undefined) return;
    this.#process = undefined;
    if (running.exitCode !== null || running.signalCode !== null) return;
    const hasExited = once(running, 'exit');
    running.kill('SIGKILL');
    await hasExited;
  }

  async stop(): Promise<void> {
    await this.kill();
    await rm(this.#directory, { recursive: true, force: true });
  }

  /** The server stops answering, connections stay. */
  freeze(): void {
    this.#process?.kill('SIGSTOP');
  }

  thaw(): void {
    this.#process?.kill('SIGCONT');
  }

  /** Sends one command on a connection of its own. Errors: `RedisErrorReply` for an error answer. */
  ask(...words: readonly string[]): Promise<RedisReply> {
    return askRedis(this.port, words);
  }

  /** Sends one command on a connection of its own. Resolves to the raw answer. */
  async command(...words: readonly string[]): Promise<string> {
    const socket = connect(this.port, '127.0.0.1');
    try {
      await once(socket, 'connect');
      const bulks = words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`);
      socket.write(`*${words.length}\r\n${bulks.join('')}`);
      return await readAnswer(socket);
    } finally {
      socket.destroy();
    }
  }
}

/** A TCP server that is not a Redis: `answer` gets each connection. */
export async function startImpostor(
  answer: (socket: Socket) => void,
): Promise<{ readonly url: string; readonly stop: () => Promise<void> }> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => sockets.delete(socket));
    answer(socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `redis://127.0.0.1:${port}`,
    stop: async () => {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

/** Reads one raw answer: a line, or a bulk string with its length line. */
async function readAnswer(socket: Socket): Promise<string> {
  let text = '';
  for await (const chunk of socket) {
    text += String(chunk);
    const firstLineEnd = text.indexOf('\r\n');
    if (firstLineEnd < 0) continue;
    const bulkLength = text.startsWith('$') ? Number(text.slice(1, firstLineEnd)) : -1;
    if (bulkLength < 0 || text.length >= firstLineEnd + 2 + bulkLength + 2) return text.trimEnd();
  }
  throw new Error('the connection ended before the answer');
}
