/** An API over HTTP/1.1 that counts how often the head of each request arrives, and answers as the request's target says. */
import { createServer, type Server, type Socket } from 'node:net';
import { eventOf, idOf } from '../../e2e/one-delivery/upstream-events.ts';
import type { Upstream } from '../harness/upstream.ts';

export interface CountingUpstream extends Upstream {
  /** By the ID in the target. */
  readonly deliveries: ReadonlyMap<string, number>;
}

export async function startCountingUpstream(): Promise<CountingUpstream> {
  const deliveries = new Map<string, number>();
  const open = new Set<Socket>();
  const server = createServer((socket) => {
    open.add(socket);
    socket.on('close', () => open.delete(socket));
    socket.on('error', () => socket.destroy());
    serve(socket, (id) => deliveries.set(id, (deliveries.get(id) ?? 0) + 1));
  });
  return listeningUpstream(server, deliveries, open);
}

/** @param open connections that would keep the server from closing */
export async function listeningUpstream(
  server: Server,
  deliveries: Map<string, number>,
  open: ReadonlySet<{ destroy(): unknown }>,
): Promise<CountingUpstream> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  return {
    host: '127.0.0.1',
    port: typeof address === 'object' && address !== null ? address.port : 0,
    requests: [],
    deliveries,
    clear: () => deliveries.clear(),
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const connection of open) connection.destroy();
      }),
  };
}

interface Head {
  readonly target: string;
  readonly length: number | 'chunked';
}

function serve(socket: Socket, count: (id: string) => void): void {
  let received = '';
  let head: Head | undefined;
  socket.on('data', (chunk: Buffer) => {
    received += chunk.toString('latin1');
    for (;;) {
      if (head === undefined) {
        const end = received.indexOf('\r\n\r\n');
        if (end < 0) return;
        head = headOf(received.slice(0, end));
        received = received.slice(end + 4);
        count(idOf(head.target));
        if (eventOf(head.target).at === 'head') act(socket, head.target);
      }
      const end = endOfBody(received, head.length);
      if (end === undefined) return;
      if (eventOf(head.target).at === 'end') act(socket, head.target);
      received = received.slice(end);
      head = undefined;
    }
  });
}

function headOf(text: string): Head {
  const [, target = ''] = text.split(' ', 2);
  const length = Number(/\r\ncontent-length: *(\d+)/i.exec(text)?.[1] ?? 0);
  return { target, length: /\r\ntransfer-encoding:/i.test(text) ? 'chunked' : length };
}

/** Undefined: it has not arrived. */
function endOfBody(text: string, length: Head['length']): number | undefined {
  if (length !== 'chunked') return text.length < length ? undefined : length;
  const end = text.indexOf('0\r\n\r\n');
  return end < 0 ? undefined : end + 5;
}

function act(socket: Socket, target: string): void {
  const { ends, writes } = eventOf(target);
  const finish = () => {
    if (ends === 'close') socket.end();
    if (ends === 'reset') socket.resetAndDestroy();
  };
  if (writes === undefined) finish();
  else socket.write(writes, finish);
}
