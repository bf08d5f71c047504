/**
 * A TCP proxy in front of one server, on a port of its own: it passes the traffic of some clients and holds back bytes of
 * others, like a partitioned network. It recognizes a client by its source address.
 */
import { once } from 'node:events';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

export interface GateSource {
  readonly address: string;
  readonly port: number;
}

interface Passage {
  readonly source: GateSource;
  readonly client: Socket;
  readonly server: Socket;
}

export class RedisGate {
  readonly port: number;
  readonly #server: Server;
  readonly #passages = new Set<Passage>();
  #isHeld: (source: GateSource) => boolean = () => false;

  private constructor(server: Server) {
    this.#server = server;
    this.port = (server.address() as AddressInfo).port;
  }

  /** Starts a gate. Nodes inside use addresses of their own, and each forwarded connection keeps its source address. */
  static async start(targetPort: () => number): Promise<RedisGate> {
    const server = createServer({ allowHalfOpen: true });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const gate = new RedisGate(server);
    server.on('connection', (client) => gate.#admit(client, targetPort()));
    return gate;
  }

  /** From now on no byte from or to those sources passes, on existing and new connections. Connections stay open. */
  hold(isHeld: (source: GateSource) => boolean): void {
    this.#isHeld = isHeld;
    for (const passage of this.#passages) this.#apply(passage);
  }

  /** Delivers the bytes that were held back. */
  release(): void {
    this.hold(() => false);
  }

  /** Both ends of the connections are reset. */
  reset(isReset: (source: GateSource) => boolean = () => true): void {
    for (const { source, client, server } of this.#passages) {
      if (!isReset(source)) continue;
      client.resetAndDestroy();
      server.resetAndDestroy();
    }
  }

  async close(): Promise<void> {
    for (const { client, server } of this.#passages) {
      client.destroy();
      server.destroy();
    }
    const isClosed = once(this.#server, 'close');
    this.#server.close();
    await isClosed;
  }

  #admit(client: Socket, targetPort: number): void {
    const source = { address: client.remoteAddress ?? '', port: client.remotePort ?? 0 };
    const server = connect({ host: '127.0.0.1', port: targetPort, allowHalfOpen: true });
    const passage: Passage = { source, client, server };
    this.#passages.add(passage);
    carry(client, server);
    carry(server, client);
    client.on('close', () => this.#passages.delete(passage));
    this.#apply(passage);
  }

  #apply({ source, client, server }: Passage): void {
    const isHeld = this.#isHeld(source);
    for (const socket of [client, server]) {
      if (isHeld) socket.pause();
      else socket.resume();
    }
  }
}

function carry(from: Socket, to: Socket): void {
  from.setNoDelay(true);
  from.on('data', (chunk) => to.write(chunk));
  from.on('end', () => to.end());
  // An error is followed by `close`.
  from.on('error', () => undefined);
  from.on('close', () => to.destroy());
}

/** Whether one of the processes holds the connection to `gatePort` that comes from the source; Linux only. */
export function isOfProcess(source: GateSource, gatePort: number, pids: readonly number[]): boolean {
  const inode = inodeOf(source.port, gatePort);
  return inode !== undefined && pids.some((pid) => socketsOf(pid).includes(`socket:[${inode}]`));
}

/** Parses `/proc/net/tcp`: number, local and remote address, state, queues, timer, retransmits, user, time-out, inode. */
function inodeOf(localPort: number, remotePort: number): string | undefined {
  const hexadecimal = (port: number) => port.toString(16).toUpperCase().padStart(4, '0');
  for (const line of readFileSync('/proc/net/tcp', 'latin1').split('\n')) {
    const fields = line.trim().split(/\s+/);
    if (!fields[1]?.endsWith(`:${hexadecimal(localPort)}`)) continue;
    if (fields[2]?.endsWith(`:${hexadecimal(remotePort)}`)) return fields[9];
  }
  return undefined;
}

function socketsOf(pid: number): readonly string[] {
  const directory = `/proc/${pid}/fd`;
  return readdirSync(directory).flatMap((name) => {
    try {
      return [readlinkSync(`${directory}/${name}`)];
    } catch {
      // It was closed meanwhile.
      return [];
    }
  });
}
