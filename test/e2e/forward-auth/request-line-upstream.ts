/** An API that records the first line of each request byte for byte: parsers of HTTP correct or reject some of those. */
import { createServer, type Socket } from 'node:net';

export interface RequestLineUpstream {
  readonly host: string;
  readonly port: number;
  /** Without the version, one character for each byte. */
  readonly lines: readonly string[];
  stop(): Promise<void>;
}

/** Closes each connection after one answer. */
export async function startRequestLineUpstream(): Promise<RequestLineUpstream> {
  const lines: string[] = [];
  const open = new Set<Socket>();
  const server = createServer((socket) => {
    let text = '';
    open.add(socket);
    socket.on('close', () => open.delete(socket));
    socket.on('error', () => socket.destroy());
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1');
      if (!text.includes('\r\n\r\n')) return;
      lines.push(text.slice(0, text.indexOf('\r\n')).replace(/ HTTP\/1\.[01]$/, ''));
      text = '';
      socket.end('HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  return {
    host: '127.0.0.1',
    port: typeof address === 'object' && address !== null ? address.port : 0,
    lines,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of open) socket.destroy();
      }),
  };
}
