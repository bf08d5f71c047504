/** Clients that send the body of a request in chunks of one byte, and keep the request open. */
import { readFileSync } from 'node:fs';
import { connect, type IpcSocketConnectOpts, type Socket, type TcpSocketConnectOpts } from 'node:net';

export interface Flood {
  /** Resolves when each connection has sent all of it, or was closed. Their number, by the status line of the answer. */
  readonly sent: Promise<ReadonlyMap<string, number>>;
  sentBytes(): number;
  /** Closes all connections. */
  end(): void;
}

export interface FloodOptions {
  readonly address: Pick<TcpSocketConnectOpts, 'host' | 'port'> | IpcSocketConnectOpts;
  readonly connections: number;
  /** What comes before the chunks: the head of the request that begins with this connection. */
  readonly head: (connection: number) => Buffer;
  /** Chunks of one byte, in a row; repeated. */
  readonly chunks: Buffer;
  readonly bytesOfConnection: number;
}

export function startFlood({ address, bytesOfConnection, chunks, connections, head }: FloodOptions): Flood {
  const sockets: Socket[] = [];
  let sentBytes = 0;
  const answers = new Map<string, number>();
  const one = (connection: number) =>
    new Promise<void>((resolve) => {
      const socket = connect(address);
      sockets.push(socket);
      let left = bytesOfConnection;
      let answer = 'none';
      socket.on('error', () => undefined).on('close', () => finish());
      socket.once('data', (bytes) => {
        answer = /^HTTP\/1\.1 (\d+)/.exec(bytes.toString('latin1'))?.[1] ?? 'data';
      });
      socket.resume();
      let isFinished = false;
      const finish = () => {
        if (isFinished) return;
        isFinished = true;
        answers.set(answer, (answers.get(answer) ?? 0) + 1);
        resolve();
      };
      const pump = () => {
        while (left > 0) {
          const part = chunks.subarray(0, left);
          left -= part.length;
          sentBytes += part.length;
          if (!socket.write(part)) {
            socket.once('drain', pump);
            return;
          }
        }
        // The kernel has all of it; the answer may be on its way.
        setTimeout(finish, 100);
      };
      socket.once('connect', () => {
        socket.write(head(connection));
        pump();
      });
    });
  const sent = Promise.all(Array.from({ length: connections }, (_, index) => one(index))).then(() => answers);
  return {
    sent,
    sentBytes: () => sentBytes,
    end: () => {
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** RFC 9112 section 7.1. */
export const HTTP1_CHUNKS = Buffer.from('1\r\na\r\n'.repeat(10_000));

/** `Transfer-Encoding: chunked`, without a body. */
export function chunkedHead(
  method: string,
  target: string,
  lines: readonly (readonly [string, string])[],
): Buffer {
  const framed = lines.filter(([name]) => !/^(content-length|transfer-encoding)$/i.test(name));
  const head = [...framed, ['Transfer-Encoding', 'chunked']].map(([name, value]) => `${name}: ${value}\r\n`);
  return Buffer.from(`${method} ${target} HTTP/1.1\r\n${head.join('')}\r\n`, 'latin1');
}

const HEADERS = 1;
const DATA = 0;
const SETTINGS = 4;
const END_HEADERS = 4;

function frame(type: number, flags: number, stream: number, payload: Buffer): Buffer {
  const header = Buffer.alloc(9);
  header.writeUIntBE(payload.length, 0, 3);
  header.writeUInt8(type, 3);
  header.writeUInt8(flags, 4);
  header.writeUInt32BE(stream, 5);
  return Buffer.concat([header, payload]);
}

/** A literal without indexing (RFC 7541 section 6.2.2). */
function literal(text: string): Buffer {
  const bytes = Buffer.from(text, 'latin1');
  if (bytes.length < 127) return Buffer.concat([Buffer.from([bytes.length]), bytes]);
  const length = [127];
  let rest = bytes.length - 127;
  for (; rest >= 128; rest = rest >> 7) length.push((rest & 127) | 128);
  length.push(rest);
  return Buffer.concat([Buffer.from(length), bytes]);
}

/** Preface, SETTINGS and the heads of `streams` requests (RFC 9113 section 3.4). */
export function http2Head(streams: number, linesOf: () => readonly (readonly [string, string])[]): Buffer {
  const block = () =>
    Buffer.concat(
      linesOf().flatMap(([name, value]) => [Buffer.from([0]), literal(name.toLowerCase()), literal(value)]),
    );
  return Buffer.concat([
    Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
    frame(SETTINGS, 0, 0, Buffer.alloc(0)),
    ...Array.from({ length: streams }, (_, index) => frame(HEADERS, END_HEADERS, 1 + 2 * index, block())),
  ]);
}

/** DATA frames of one byte, for each stream in turn. */
export function http2Chunks(streams: number): Buffer {
  const frames = Array.from({ length: streams }, (_, index) =>
    frame(DATA, 0, 1 + 2 * index, Buffer.from('a')),
  );
  return Buffer.concat(Array.from({ length: 200 }, () => frames).flat());
}

export function residentMib(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1]) / 1024;
}

export interface Watched {
  /** Highest resident memory, beyond what it was at the start, MiB. */
  readonly grownMib: number;
  readonly probes: number;
  readonly slowestProbeMs: number;
  readonly allMs: number;
}

/** The kernel may have all of an attack before the program has read it. */
const MIN_PROBES = 30;

/** Asks for the program's liveness again and again, and reads its memory, until the attack has ended, at least {@link MIN_PROBES} times. */
export async function watchWhile(
  pid: number,
  probe: () => Promise<unknown>,
  attack: Promise<unknown>,
): Promise<Watched> {
  const before = residentMib(pid);
  let highest = before;
  let slowestProbeMs = 0;
  let probes = 0;
  let isOver = false;
  const beganMs = performance.now();
  void attack.finally(() => {
    isOver = true;
  });
  const memory = setInterval(() => {
    highest = Math.max(highest, residentMib(pid));
  }, 50);
  try {
    while (!isOver || probes < MIN_PROBES) {
      const startedMs = performance.now();
      await probe();
      slowestProbeMs = Math.max(slowestProbeMs, performance.now() - startedMs);
      probes += 1;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    await attack;
  } finally {
    clearInterval(memory);
  }
  const allMs = performance.now() - beganMs;
  return { grownMib: Math.max(highest, residentMib(pid)) - before, probes, slowestProbeMs, allMs };
}
