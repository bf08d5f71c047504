/** `proofgate dev` as a process, in front of an upstream that answers with what it received. */
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Child, startChild } from '../harness/child.ts';
import { proofgateCommand } from '../harness/program.ts';

export interface Received {
  readonly method: string;
  readonly target: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

export interface DevSite {
  /** Such as `http://127.0.0.1:40123`. */
  readonly origin: string;
  /** Origin of the upstream itself, where unsigned requests arrive unverified. */
  readonly upstreamOrigin: string;
  readonly keyFile: string;
  readonly child: Child;
  /** Requests that reached the upstream. */
  readonly received: readonly Received[];
  stop(): Promise<void>;
}

/** Paths below `/redirect/STATUS/` redirect to the rest of the path, or to an absolute URL in `?to=`. */
export async function startDev(more: readonly string[] = []): Promise<DevSite> {
  const folder = mkdtempSync(join(tmpdir(), 'pg-dev-'));
  const received: Received[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { headers, method = '', url: target = '' } = request;
      received.push({ method, target, headers, body: Buffer.concat(chunks).toString() });
      const [, status, path] = /^\/redirect\/(\d+)(\/.*)$/.exec(target) ?? [];
      if (status === undefined) return response.end('served');
      const to = new URL(path ?? '', 'http://any').searchParams.get('to');
      return response.writeHead(Number(status), { location: to ?? path }).end();
    });
  });
  server.keepAliveTimeout = 0;
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const upstreamOrigin = `http://127.0.0.1:${port}`;
  const keyFile = join(folder, 'key.pem');
  const args = ['dev', '--upstream', upstreamOrigin, '--listen', '127.0.0.1:0', '--key', keyFile, ...more];
  const child = startChild(proofgateCommand(args));
  const [, origin = ''] = await child.waitForLine(/(?:^API: +|"listen":")(http:[^ "]+)/);
  return {
    origin,
    upstreamOrigin,
    keyFile,
    child,
    received,
    stop: async () => {
      await child.stop();
      server.closeAllConnections();
      server.close();
      if (existsSync(keyFile)) throw new Error('proofgate dev left its key');
      rmSync(folder, { recursive: true });
    },
  };
}
