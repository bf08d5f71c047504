/**
 * The listening sockets of the ext_authz server: TCP or a Unix socket, with or without TLS. They count and limit connections
 * before grpc-js gets them.
 */
import cluster from 'node:cluster';
import { lookup } from 'node:dns/promises';
import { lstatSync, statSync, unlinkSync } from 'node:fs';
import {
  type AddressInfo,
  connect,
  createServer,
  type ListenOptions,
  type Server,
  type Socket,
} from 'node:net';
import { dirname } from 'node:path';
import { createServer as createTlsServer, type TLSSocket, type Server as TlsServer } from 'node:tls';
import type { ExtAuthzServerMetrics } from '../../telemetry/ext-authz-server-metrics.ts';
import { isNamedClient, type ServerTls, type TlsMaterial, tlsOptions } from './tls.ts';

export interface ConnectionListenerOptions {
  /** `HOST:PORT`, `[IPV6]:PORT` (port 0 picks one) or `unix:PATH`. */
  readonly listen: string;
  /** More connections than this at a time are closed at once. */
  readonly maxConnections: number;
  readonly tls: ServerTls | undefined;
  readonly metrics: ExtAuthzServerMetrics;
  /** A connection, its TLS handshake done and its client let in. */
  readonly onConnection: (connection: Socket | TLSSocket) => void;
}

export interface ConnectionListener {
  /** Where it listens, with the real port. */
  readonly address: string;
  /** Bytes that have come in over all connections, also those that are closed. */
  bytesReceived(): number;
  /** New handshakes use it; connections go on. @throws TlsMaterialError, and what was in use stays */
  setTlsMaterial(material: TlsMaterial): void;
  /** Takes no new connection. */
  stop(): void;
  /** Settles when the last connection is closed. */
  readonly closed: Promise<void>;
  /** Closes what is still open. */
  destroy(): void;
}

/** Thrown when the address cannot be listened on. */
export class ListenError extends Error {
  override readonly name = 'ListenError';
}

/** @throws ListenError */
export async function openConnectionListener(
  options: ConnectionListenerOptions,
): Promise<ConnectionListener> {
  const connections = new ConnectionCount(options.metrics);
  const servers: Server[] = [];
  const bindAll = async (): Promise<string> => {
    let { listen } = options;
    for (const place of await placesOf(listen)) {
      const server = createListener(options, connections);
      // Several addresses of one name share the port that the first one got.
      const port = /:(\d+)$/.exec(listen)?.[1] ?? '0';
      await bind(server, 'path' in place ? place : { ...place, port: Number(port) });
      servers.push(server);
      listen = withRealPort(listen, server);
    }
    return listen;
  };
  const stop = () => {
    for (const server of servers) if (server.listening) server.close();
  };
  try {
    const address = await bindAll();
    return {
      address,
      bytesReceived: () => connections.bytesReceived(),
      setTlsMaterial: (material) => setTlsMaterial(servers, material),
      stop,
      closed: Promise.all(servers.map(closedEvent)).then(() => undefined),
      destroy: () => connections.destroy(),
    };
  } catch (error) {
    stop();
    throw error instanceof ListenError ? error : new ListenError(codeOf(error));
  }
}

/** Connections as the system has them, before TLS. */
class ConnectionCount {
  readonly #metrics: ExtAuthzServerMetrics;
  readonly #open = new Set<Socket>();
  #bytesOfClosed = 0;

  constructor(metrics: ExtAuthzServerMetrics) {
    this.#metrics = metrics;
  }

  add(socket: Socket): void {
    this.#open.add(socket);
    this.#metrics.connections(this.#open.size);
    socket.once('close', () => {
      this.#bytesOfClosed += socket.bytesRead;
      this.#open.delete(socket);
      this.#metrics.connections(this.#open.size);
    });
  }

  bytesReceived(): number {
    let bytes = this.#bytesOfClosed;
    for (const socket of this.#open) bytes += socket.bytesRead;
    return bytes;
  }

  destroy(): void {
    for (const socket of this.#open) socket.destroy();
  }
}

function createListener(options: ConnectionListenerOptions, connections: ConnectionCount): Server {
  const { maxConnections, metrics, tls } = options;
  const server =
    tls === undefined
      ? createServer({ noDelay: true }, options.onConnection)
      : createTlsListener(options, tls);
  server.maxConnections = maxConnections;
  server.on('drop', () => metrics.refused('connections'));
  server.on('connection', (socket: Socket) => connections.add(socket));
  return server;
}

function createTlsListener({ metrics, onConnection }: ConnectionListenerOptions, tls: ServerTls): TlsServer {
  const server = createTlsServer({ ...tlsOptions(tls.material), noDelay: true });
  server.on('tlsClientError', () => metrics.refused('tls'));
  server.on('secureConnection', (socket) => {
    // A peer that goes away in the middle is nobody's fault.
    socket.on('error', () => undefined);
    const isAllowed = isNamedClient(socket, tls.clientNames);
    if (isAllowed && socket.alpnProtocol === 'h2') {
      onConnection(socket);
      return;
    }
    metrics.refused(isAllowed ? 'tls' : 'client_name');
    socket.destroy();
  });
  return server;
}

function setTlsMaterial(servers: readonly Server[], material: TlsMaterial): void {
  const options = tlsOptions(material);
  for (const server of servers) {
    if ('setSecureContext' in server) (server as TlsServer).setSecureContext(options);
  }
}

type Place = { readonly path: string } | { readonly host: string };

async function placesOf(listen: string): Promise<readonly Place[]> {
  if (listen.startsWith('unix:')) {
    const path = listen.slice('unix:'.length);
    // The system would say EACCES: libuv takes the one for the other.
    const folder = dirname(path);
    if (statSync(folder, { throwIfNoEntry: false }) === undefined) {
      throw new ListenError(`the folder ${folder} does not exist`);
    }
    // Of several workers the primary has the socket: it has looked before it started them.
    if (!cluster.isWorker) await removeStaleSocket(path);
    return [{ path }];
  }
  const host = listen.replace(/:\d+$/, '').replace(/^\[(.*)\]$/, '$1');
  const found = await lookup(host, { all: true });
  return [...new Set(found.map(({ address }) => address))].map((address) => ({ host: address }));
}

function bind(server: Server, place: ListenOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(place, () => {
      server.removeListener('error', reject);
      // For example when file descriptors run out: that connection is lost, the listener goes on.
      server.on('error', () => undefined);
      resolve();
    });
  });
}

function withRealPort(listen: string, server: Server): string {
  if (listen.startsWith('unix:')) return listen;
  return listen.replace(/:\d+$/, `:${(server.address() as AddressInfo).port}`);
}

function closedEvent(server: Server): Promise<void> {
  return new Promise((resolve) => server.once('close', resolve));
}

/**
 * A socket file that a killed process left behind, and nobody answers on, would block the address for ever.
 * @throws ListenError when somebody does
 */
export async function removeStaleSocket(path: string): Promise<void> {
  if (!lstatSync(path, { throwIfNoEntry: false })?.isSocket()) return;
  if (await somebodyListens(path)) throw new ListenError(`${path} is in use by another process`);
  unlinkSync(path);
}

function somebodyListens(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path);
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    // Any other error, such as a full backlog or a missing right, does not prove that nobody is there.
    socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code !== 'ECONNREFUSED'));
  });
}

function codeOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return typeof code === 'string' ? code : 'the address cannot be used';
}
