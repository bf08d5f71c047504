/**
 * A real redis-server on a free loopback port, for tests. It keeps nothing on disk: a restart is empty.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const READY_TIMEOUT_MS = 10_000;

export class TestRedisServer {
  readonly port: number;
  readonly #directory: string;
  readonly #settings: readonly string[];
  #process: ChildProcess | undefined;

  private constructor(port: number, directory: string, settings: readonly string[]) {
    this.port = port;
    this.#directory = directory;
    this.#settings = settings;
  }

  /** Starts a server; `settings` are further command line arguments, as in `--requirepass`, `secret`. */
  static async start(...settings: readonly string[]): Promise<TestRedisServer> {
    const directory = await mkdtemp(join(tmpdir(), 'proofgate-redis-'));
    const server = new TestRedisServer(await freePort(), directory, settings);
    await server.startAgain();
    return server;
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}`;
  }

  /** On the same port, with nothing remembered. */
  async startAgain(): Promise<void> {
    const fixed = ['--port', `${this.port}`, '--bind', '127.0.0.1', '--dir', this.#directory];
    const memoryOnly = ['--save', '', '--appendonly', 'no'];
    this.#process = spawn('redis-server', [...fixed, ...memoryOnly, ...this.#settings], { stdio: 'ignore' });
    await waitUntil(async () => (await this.command('PING').catch(() => '')) !== '', READY_TIMEOUT_MS);
  }

  /** Ends the server as a crash would; its clients lose their connections. */
  async kill(): Promise<void> {
    const running = this.#process;
    if (running === undefined) return;
    this.#process = undefined;
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

/** A TCP server that is no Redis: `answer` gets each connection. */
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

/** Looks again every few milliseconds until the condition holds. Errors: when it does not in time. */
export async function waitUntil(
  condition: () => boolean | Promise<boolean>,
  timeoutMs = READY_TIMEOUT_MS,
): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`not so within ${timeoutMs} ms`);
    await sleep(5);
  }
}

export async function freePort(): Promise<number> {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

/** One line, or a bulk string with its length line, as they came. */
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
