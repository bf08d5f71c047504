/** A collector of audit events over HTTP or HTTPS that keeps what it receives and answers as configured. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { gunzipSync } from 'node:zlib';

export interface CollectedBatch {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  readonly bytesOnTheWire: number;
  readonly text: string;
}

/** `silence` never answers, `break` resets after the whole request has come. */
export type CollectorAnswer =
  | { readonly status: number; readonly headers?: Readonly<Record<string, string>> }
  | 'silence'
  | 'break';

export interface AuditCollector {
  readonly url: string;
  /** Every request that came as a whole, whatever the answer. */
  readonly received: readonly CollectedBatch[];
  /** Batches that were accepted (2xx). */
  readonly taken: readonly CollectedBatch[];
  /** Sets how it answers from now on. */
  behave(answer: CollectorAnswer | ((batch: CollectedBatch) => CollectorAnswer)): void;
  stop(): Promise<void>;
}

export async function startAuditCollector(tls?: {
  readonly cert: string;
  readonly key: string;
}): Promise<AuditCollector> {
  const received: CollectedBatch[] = [];
  const taken: CollectedBatch[] = [];
  let behaviour: (batch: CollectedBatch) => CollectorAnswer = () => ({ status: 204 });
  const receive = async (request: IncomingMessage, response: ServerResponse) => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part);
    const batch = batchOf(request, Buffer.concat(parts));
    received.push(batch);
    const answer = behaviour(batch);
    if (answer === 'silence') return;
    if (answer === 'break') return void request.socket.destroy();
    if (answer.status < 300) taken.push(batch);
    response.writeHead(answer.status, answer.headers).end();
  };
  const handle = (request: IncomingMessage, response: ServerResponse) =>
    void receive(request, response).catch(() => response.destroy());
  const server = tls === undefined ? createServer(handle) : createTlsServer(tls, handle);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${port}/ingest`,
    received,
    taken,
    behave: (answer) => {
      behaviour = typeof answer === 'function' ? answer : () => answer;
    },
    stop: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

function batchOf(request: IncomingMessage, body: Buffer): CollectedBatch {
  const isCompressed = request.headers['content-encoding'] === 'gzip';
  return {
    method: request.method ?? '',
    path: request.url ?? '',
    headers: request.headers,
    bytesOnTheWire: body.byteLength,
    text: (isCompressed ? gunzipSync(body) : body).toString('utf8'),
  };
}
