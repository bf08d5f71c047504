/**
 * Listening sockets of an enforcement point: TCP or a Unix socket, with or without TLS. They count and limit
 * connections before a protocol server, such as grpc-js or node:http, gets them.
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
import { HandshakeGuard } from './handshake-guard.ts';
import {
  type ApplicationProtocol,
  asksForCertificates,
  isNamedClient,
  type ServerTls,
  type TlsMaterial,
  tlsOptions,
} from './tls-material.ts';

export interface ConnectionListenerOptions {
  /** `HOST:PORT`, `[IPV6]:PORT` (port 0 picks a free one) or `unix:PATH`. */
  readonly listen: string;
  /** Maximum number of concurrent connections; further ones are closed at once. */
  readonly maxConnections: number;
  readonly tls: ServerTls | undefined;
  /** Protocols that TLS clients may negotiate (ALPN). Clients without ALPN get `http/1.1`. */
  readonly protocols: readonly ApplicationProtocol[];
  readonly metrics: ConnectionMetrics;
  /** Called with each connection after its TLS handshake, when its client is allowed. */
  readonly onConnection: (connection: Socket | TLSSocket) => void;
}

/** Counts open connections, and why others were rejected: see `src/process/telemetry/`. */
export interface ConnectionMetrics {
  connections(open: number): void;
  refused(why: 'connections' | 'tls' | 'client_name'): void;
}

export interface ConnectionListener {
  /** Address it listens on, with the actual port. */
  readonly address: string;
  /** Total number of bytes received, including those of closed connections. */
  bytesReceived(): number;
  /**
   * Uses the material for new handshakes; open connections continue. @throws TlsMaterialError, and keeps the current
   * material
   */
  setTlsMaterial(material: TlsMaterial): void;
  /** Stops accepting connections. */
  stop(): void;
  /** Settles when the last connection is closed. */
  readonly closed: Promise<void>;
  /** Closes the connections that are still open. */
  destroy(): void;
}

/** Thrown when the server cannot listen on the address. */
export class ListenError extends Error {
  override readonly name = 'ListenError';
}

/** @throws ListenError */
export async function openConnectionListener(
  options: ConnectionListenerOptions,
): Promise<ConnectionListener> {
  const connections = new ConnectionCount(options.metrics);
  const listening: Listening[] = [];
  const bindAll = async (): Promise<string> => {
    let { listen } = options;
    for (const place of await placesOf(listen)) {
      const one = createListening(options, connections);
      // All addresses of one name share the port that the first one got.
      const port = /:(\d+)$/.exec(listen)?.[1] ?? '0';
      await bind(one.server, 'path' in place ? place : { ...place, port: Number(port) });
      listening.push(one);
      listen = withRealPort(listen, one.server);
    }
    return listen;
  };
  const stop = () => {
    for (const { server } of listening) if (server.listening) server.close();
  };
  try {
    const address = await bindAll();
    return {
      address,
      bytesReceived: () => connections.bytesReceived(),
      // The context needs every option again: without them it would, for example, resume sessions.
      setTlsMaterial(material) {
        const changed = tlsOptions({ ...options.tls, material }, options.protocols);
        for (const { secured } of listening) secured?.setSecureContext(changed);
      },
      stop,
      closed: Promise.all(listening.map(({ server }) => closedEvent(server))).then(() => undefined),
      destroy: () => connections.destroy(),
    };
  } catch (error) {
    stop();
    throw error instanceof ListenError ? error : new ListenError(codeOf(error));
  }
}

/** Counts and limits sockets before the TLS handshake. */
class ConnectionCount {
  readonly #metrics: ConnectionMetrics;
  readonly #open = new Set<Socket>();
  #bytesOfClosed = 0;

  constructor(metrics: ConnectionMetrics) {
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

interface Listening {
  readonly server: Server;
  readonly secured: TlsServer | undefined;
}

function createListening(options: ConnectionListenerOptions, connections: ConnectionCount): Listening {
  const { maxConnections, metrics, tls } = options;
  const secured = tls && createTlsListener(options, tls);
  const server = createServer({ noDelay: true }, connectionHandler(options, secured));
  server.maxConnections = maxConnections;
  server.on('drop', () => metrics.refused('connections'));
  server.on('connection', (socket: Socket) => connections.add(socket));
  return { server, secured };
}

function connectionHandler(
  { onConnection, tls }: ConnectionListenerOptions,
  secured: TlsServer | undefined,
): (socket: Socket) => void {
  if (secured === undefined || tls === undefined) return onConnection;
  if (!asksForCertificates(tls)) return (socket) => secured.emit('connection', socket);
  const guard = new HandshakeGuard(secured);
  return (socket) => guard.take(socket);
}

/** Handshakes of connections that another server accepts. */
function createTlsListener(options: ConnectionListenerOptions, tls: ServerTls): TlsServer {
  const { metrics, onConnection, protocols } = options;
  const server = createTlsServer(tlsOptions(tls, protocols));
  server.on('tlsClientError', () => metrics.refused('tls'));
  server.on('secureConnection', (socket) => {
    // A peer that disconnects is not an error.
    socket.on('error', () => undefined);
    const isAllowed = isNamedClient(socket, tls.clientNames);
    const protocol = socket.alpnProtocol === false ? 'http/1.1' : socket.alpnProtocol;
    if (isAllowed && protocols.some((one) => one === protocol)) {
      onConnection(socket);
      return;
    }
    metrics.refused(isAllowed ? 'tls' : 'client_name');
    socket.destroy();
  });
  return server;
}

type Place = { readonly path: string } | { readonly host: string };

async function placesOf(listen: string): Promise<readonly Place[]> {
  if (listen.startsWith('unix:')) {
    const path = listen.slice('unix:'.length);
    // The system would report EACCES: libuv maps ENOENT to it.
    const folder = dirname(path);
    if (statSync(folder, { throwIfNoEntry: false }) === undefined) {
      throw new ListenError(`the folder ${folder} does not exist`);
    }
    // With several workers, the primary owns the socket and has checked it before it started them.
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
      // For example when file descriptors run out: that connection is lost, the listener continues.
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
 * Removes a socket file that a killed process left behind, because it would block the address for ever.
 * @throws ListenError when a process listens on it
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
    // Any other error, such as a full backlog or a missing permission, does not prove that no process listens.
    socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code !== 'ECONNREFUSED'));
  });
}

function codeOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return typeof code === 'string' ? code : 'the address cannot be used';
}
