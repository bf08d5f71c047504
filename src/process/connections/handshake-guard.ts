/**
 * Limits the work that a client can cause with a TLS handshake: its bytes, and its share of the event loop.
 * Node.js has no option for the length of a client's certificate chain.
 */
import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import type { TLSSocket, Server as TlsServer } from 'node:tls';
import { HandshakeQueue } from './handshake-queue.ts';

/**
 * Maximum number of bytes that a client sends until its handshake is complete. Two ClientHellos with post-quantum keys
 * have 4 KiB, and a chain of four RSA-4096 certificates 7 KiB.
 */
export const MAX_HANDSHAKE_BYTES = 12 * 1024;

export class HandshakeGuard {
  readonly #server: TlsServer;
  readonly #queue = new HandshakeQueue();
  /** The connection whose bytes the server is processing. */
  #current: GuardedConnection | undefined;

  constructor(server: TlsServer) {
    this.#server = server;
    server.prependListener('secureConnection', (socket) => this.#complete(socket));
  }

  /** Gives the connection to the TLS server. */
  take(socket: Socket): void {
    const connection = new GuardedConnection(socket, (work) =>
      this.#queue.run(socket.remoteAddress, () => {
        this.#current = connection;
        try {
          work();
        } finally {
          this.#current = undefined;
        }
      }),
    );
    this.#server.emit('connection', connection);
    // The TLS socket has read the client's end. The socket itself, not the streams below it, then ends its writable side.
    connection.allowHalfOpen = true;
  }

  /** A handshake completes while the server processes its last bytes. */
  #complete(socket: TLSSocket): void {
    const { remoteAddress, remoteFamily, remotePort } = this.#current?.complete() ?? {};
    // Node.js has no peer address for a TLS socket on top of another stream.
    for (const [name, value] of Object.entries({ remoteAddress, remoteFamily, remotePort })) {
      Object.defineProperty(socket, name, { value });
    }
  }
}

/** A TCP connection below TLS. */
class GuardedConnection extends Duplex {
  readonly #socket: Socket;
  readonly #enqueue: (work: () => void) => void;
  #bytesLeft = MAX_HANDSHAKE_BYTES;
  #isComplete = false;
  #isWaiting = false;

  constructor(socket: Socket, enqueue: (work: () => void) => void) {
    super({ allowHalfOpen: false });
    this.#socket = socket;
    this.#enqueue = enqueue;
    socket.allowHalfOpen = true;
    socket.on('data', (bytes) => this.#receive(bytes));
    socket.once('end', () => this.push(null));
    socket.once('error', (error) => this.destroy(error));
    socket.once('close', () => this.destroy());
  }

  /** No limit from here on. @returns the TCP connection */
  complete(): Socket {
    this.#isComplete = true;
    return this.#socket;
  }

  #receive(bytes: Buffer): void {
    if (this.#isComplete) {
      this.#pass(bytes);
      return;
    }
    // No bytes may overtake these.
    this.#isWaiting = true;
    this.#socket.pause();
    this.#enqueue(() => {
      this.#isWaiting = false;
      this.#socket.resume();
      this.#passHandshake(bytes);
    });
  }

  #passHandshake(bytes: Buffer): void {
    if (this.destroyed) return;
    const allowed = bytes.subarray(0, this.#bytesLeft);
    this.#bytesLeft -= allowed.length;
    this.#pass(allowed);
    // The remaining bytes may be the first request.
    if (this.#isComplete) this.#pass(bytes.subarray(allowed.length));
    else if (this.#bytesLeft === 0) this.destroy();
  }

  #pass(bytes: Buffer): void {
    if (bytes.length > 0 && !this.push(bytes)) this.#socket.pause();
  }

  override _read(): void {
    if (!this.#isWaiting) this.#socket.resume();
  }

  override _write(bytes: Buffer, _: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#socket.write(bytes, done);
  }

  override _writev(writes: readonly { chunk: Buffer }[], done: (error?: Error | null) => void): void {
    this.#socket.write(Buffer.concat(writes.map(({ chunk }) => chunk)), done);
  }

  override _final(done: () => void): void {
    this.#socket.end(done);
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#socket.destroy();
    done(error);
  }
}
