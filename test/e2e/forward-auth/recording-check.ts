/** A forward-authentication server that records what a proxy asks and sends a configured answer, to measure proxies. */

import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type ServerOptions } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TlsOptions } from 'node:tls';
import type { ReceivedCheck } from '../../../src/enforcement/ext-authz-http/checked-request.ts';
import type { HeaderLine } from '../../../src/tools/conformance/wire/exchange.ts';

export interface RecordedCheck extends ReceivedCheck {
  readonly body: Buffer;
}

export interface CheckBehaviour {
  readonly status: number;
  readonly headers?: readonly HeaderLine[];
  readonly body?: string;
}

/** It closes the connection in place of an answer. */
export const RESET = 'reset';

/** As the verifier allows; the shipped Envoy configuration asks for the decision ID. */
export const ALLOW: CheckBehaviour = {
  status: 200,
  headers: [
    ['x-proofgate-subject', 'client:billing'],
    ['x-proofgate-decision-id', '00000000-0000-4000-8000-000000000000'],
  ],
};

/** Without a header. */
export const BARE_ALLOW: CheckBehaviour = { status: 200 };

export interface RecordingCheck {
  readonly socketPath: string;
  /** With TLS; otherwise 0. */
  readonly port: number;
  readonly checks: readonly RecordedCheck[];
  behave(behaviour: CheckBehaviour | typeof RESET): void;
  clear(): void;
  stop(): Promise<void>;
}

/** @param tls with which it listens on a TCP port of 127.0.0.1, not on a socket file */
export async function startRecordingCheck(tls?: TlsOptions): Promise<RecordingCheck> {
  const folder = await mkdtemp(join(tmpdir(), 'pg-check-'));
  const socketPath = join(folder, 'c.sock');
  const checks: RecordedCheck[] = [];
  let behaviour: CheckBehaviour | typeof RESET = ALLOW;
  const options: ServerOptions = { maxHeaderSize: 1024 * 1024 };
  const server = tls === undefined ? createServer(options) : createTlsServer({ ...options, ...tls });
  server.on('request', (request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { method = '', rawHeaders, url = '' } = request;
      checks.push({ method, target: url, rawHeaders, body: Buffer.concat(chunks) });
      if (behaviour === RESET) {
        request.socket.destroy();
        return;
      }
      response.writeHead(behaviour.status, (behaviour.headers ?? []).flat());
      response.end(behaviour.body ?? '');
    });
  });
  server.maxHeadersCount = 0;
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    if (tls === undefined) server.listen(socketPath, resolve);
    else server.listen(0, '127.0.0.1', resolve);
  });
  const address = server.address();
  return {
    socketPath,
    port: typeof address === 'object' && address !== null ? address.port : 0,
    checks,
    behave: (next) => {
      behaviour = next;
    },
    clear: () => void checks.splice(0),
    stop: async () => {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
      await rm(folder, { recursive: true, force: true });
    },
  };
}
