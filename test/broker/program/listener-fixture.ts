/** A broker's listener whose server answers with what it knows of the connection. */
import { createHash } from 'node:crypto';
import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { type ConnectionOptions, connect as connectTls, type SecureVersion, type TLSSocket } from 'node:tls';
import type { Connection } from '../../../src/broker/broker-ports.ts';
import { createBrokerServer, openBrokerListener } from '../../../src/broker/program/broker-listener.ts';
import { ClientConnections, type ClosingCause } from '../../../src/broker/program/client-connections.ts';
import type { TlsMaterial } from '../../../src/process/connections/tls-material.ts';

export interface ListenerFixture {
  readonly address: string;
  readonly port: number;
  readonly server: Server;
  readonly connections: ClientConnections;
  readonly closed: ClosingCause[];
  /** Requests to `/slow`, which a test answers. */
  readonly slow: ServerResponse[];
  setTlsMaterial(material: TlsMaterial): void;
  drain(timeoutMs?: number): Promise<void>;
}

export interface FixtureOptions {
  readonly listen?: string;
  readonly tls?: TlsMaterial | undefined;
  readonly nowMs?: () => number;
}

export async function openFixture({
  listen = '127.0.0.1:0',
  nowMs = Date.now,
  tls,
}: FixtureOptions): Promise<ListenerFixture> {
  const closed: ClosingCause[] = [];
  const slow: ServerResponse[] = [];
  const connections = new ClientConnections(listen.startsWith('unix:'), nowMs, (cause) => closed.push(cause));
  const server = createBrokerServer((request, response) => {
    if (request.url === '/slow') slow.push(response);
    else response.end(JSON.stringify(describeConnection(connections.connectionOf(request))));
  });
  const listener = await openBrokerListener({
    listen,
    tls: tls && { material: tls, clientNames: [] },
    maxConnections: 100,
    metrics: { connections: () => undefined, refused: () => undefined },
    connections,
    server,
  });
  const { address } = listener;
  const port = Number(/:(\d+)$/.exec(address)?.[1] ?? 0);
  const drain = (timeoutMs = 1_000) => listener.drain(timeoutMs);
  return { address, port, server, connections, closed, slow, setTlsMaterial: listener.setTlsMaterial, drain };
}

/** What the fixture answers. */
export interface ShownConnection {
  readonly kind: Connection['kind'];
  readonly isResumed?: boolean;
  /** SHA-256 of each certificate, upper case with colons, as `X509Certificate.fingerprint256`. */
  readonly certificates?: readonly string[];
}

function describeConnection(connection: Connection): ShownConnection {
  if (connection.kind !== 'tls') return { kind: connection.kind };
  const { clientCertificates, isResumed } = connection;
  return { kind: 'tls', isResumed, certificates: clientCertificates.map(fingerprint) };
}

export function fingerprint(der: Uint8Array): string {
  const hex = createHash('sha256').update(der).digest('hex').toUpperCase();
  return hex.match(/../g)?.join(':') ?? '';
}

/** A client that keeps its connection. */
export class RawClient {
  readonly socket: Socket;
  #text = '';
  readonly ended: Promise<void>;

  constructor(socket: Socket) {
    this.socket = socket;
    socket.setEncoding('latin1');
    socket.on('data', (text: string) => {
      this.#text += text;
    });
    socket.on('error', () => undefined);
    this.ended = new Promise((resolve) => socket.once('close', () => resolve()));
  }

  get text(): string {
    return this.#text;
  }

  send(path = '/'): void {
    this.socket.write(`GET ${path} HTTP/1.1\r\nhost: broker\r\n\r\n`);
  }

  /** Sends a request and waits for its body. */
  async ask(path = '/'): Promise<ShownConnection> {
    this.#text = '';
    this.send(path);
    for (;;) {
      const body = /\r\n\r\n([\s\S]*)$/.exec(this.#text)?.[1] ?? '';
      if (body.endsWith('}')) return JSON.parse(body);
      if (this.socket.destroyed) throw new Error(`closed after ${JSON.stringify(this.#text)}`);
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
}

/** Connects over TLS, and collects the sessions that the server offers. */
export async function connectWithTls(
  port: number,
  version: SecureVersion,
  options: ConnectionOptions = {},
): Promise<{ readonly client: RawClient; readonly sessions: Buffer[]; readonly tls: TLSSocket }> {
  const sessions: Buffer[] = [];
  const tls = connectTls({
    host: '127.0.0.1',
    port,
    servername: 'broker.test',
    rejectUnauthorized: false,
    minVersion: version,
    maxVersion: version,
    ...options,
  });
  tls.on('session', (session: Buffer) => sessions.push(session));
  const client = new RawClient(tls);
  await new Promise<void>((resolve, reject) => {
    tls.once('secureConnect', resolve);
    tls.once('error', reject);
  });
  return { client, sessions, tls };
}
