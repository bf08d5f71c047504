/**
 * The broker's connections with their client certificates. A client sends its certificate only in the handshake, so a
 * connection must outlive neither the certificate nor the trust bundles of that time. It then closes after its requests
 * in progress.
 * Source: docs/operate/broker.md "Connections".
 */
import type { X509Certificate } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import type { Connection } from '../broker-ports.ts';

/** Why the broker closes a connection with a client certificate. */
export type ClosingCause = 'certificate_ended' | 'bundles_changed';

/** Maximum of Node's timers. A connection that is open for that long is closed early, which does no harm. */
const MAX_TIMER_MS = 2 ** 31 - 1;
/** OpenSSL accepts 100 KiB of certificates; verifying a chain needs at most this number of them. */
const MAX_CERTIFICATES = 16;

interface OpenConnection {
  readonly shown: Connection;
  readonly timer: NodeJS.Timeout | undefined;
  /** Responses in the order of their requests (pipelining). */
  readonly responses: Set<ServerResponse>;
  isClosing: boolean;
}

export class ClientConnections {
  readonly #open = new Map<Socket, OpenConnection>();
  readonly #nowMs: () => number;
  readonly #onClosed: (cause: ClosingCause) => void;
  readonly #plain: Connection;
  #isDraining = false;
  #whenIdle: (() => void) | undefined;

  /** @param isUnixSocket whether connections without TLS come over a Unix socket */
  constructor(isUnixSocket: boolean, nowMs: () => number, onClosed: (cause: ClosingCause) => void) {
    this.#plain = { kind: isUnixSocket ? 'unix_socket' : 'plain' };
    this.#nowMs = nowMs;
    this.#onClosed = onClosed;
  }

  /** Call with each connection after its handshake, before an HTTP server gets it. */
  take(socket: Socket): void {
    const certificates = socket instanceof TLSSocket ? clientCertificates(socket) : [];
    const shown = socket instanceof TLSSocket ? tlsConnection(socket, certificates) : this.#plain;
    const connection = {
      shown,
      timer: this.#timerOf(socket, certificates),
      responses: new Set<ServerResponse>(),
      isClosing: this.#isDraining,
    };
    this.#open.set(socket, connection);
    socket.once('close', () => {
      clearTimeout(connection.timer);
      this.#open.delete(socket);
    });
  }

  connectionOf({ socket }: IncomingMessage): Connection {
    // An unknown connection has not proved a key.
    return this.#open.get(socket)?.shown ?? { kind: 'plain' };
  }

  /** Call when a request begins. */
  begin({ socket }: IncomingMessage, response: ServerResponse): void {
    const connection = this.#open.get(socket);
    if (connection === undefined) return;
    connection.responses.add(response);
    if (connection.isClosing) announceClosing(response);
    response.once('close', () => {
      connection.responses.delete(response);
      if (connection.isClosing && connection.responses.size === 0) socket.destroySoon();
      if (this.#whenIdle !== undefined && this.#isIdle()) this.#whenIdle();
    });
  }

  /** Closes every connection after its requests in progress. Resolves when none is in progress. */
  drain(): Promise<void> {
    this.#isDraining = true;
    for (const socket of this.#open.keys()) this.#close(socket);
    return new Promise((resolve) => {
      this.#whenIdle = resolve;
      if (this.#isIdle()) resolve();
    });
  }

  #isIdle(): boolean {
    return [...this.#open.values()].every(({ responses }) => responses.size === 0);
  }

  /** Closes connections with client certificates, because those were verified with earlier trust bundles. */
  closeCertified(): void {
    for (const [socket, { shown }] of this.#open) {
      if (shown.kind === 'tls' && shown.clientCertificates.length > 0) this.#close(socket, 'bundles_changed');
    }
  }

  /** An expired certificate needs no timer, because its request is answered with that error. */
  #timerOf(socket: Socket, certificates: readonly X509Certificate[]): NodeJS.Timeout | undefined {
    const ends = certificates.map(({ validTo }) => Date.parse(validTo)).filter(Number.isFinite);
    if (ends.length === 0) return undefined;
    const leftMs = Math.min(...ends) - this.#nowMs();
    if (leftMs <= 0) return undefined;
    return setTimeout(() => this.#close(socket, 'certificate_ended'), Math.min(leftMs, MAX_TIMER_MS)).unref();
  }

  #close(socket: Socket, cause?: ClosingCause): void {
    const connection = this.#open.get(socket);
    if (connection === undefined || connection.isClosing) return;
    connection.isClosing = true;
    if (cause !== undefined) this.#onClosed(cause);
    for (const response of connection.responses) announceClosing(response);
    if (connection.responses.size === 0) socket.destroySoon();
  }
}

function announceClosing(response: ServerResponse): void {
  if (!response.headersSent) response.setHeader('connection', 'close');
}

/**
 * A resumed session repeats neither the certificate nor the proof of its key, so it counts as a session without a
 * certificate.
 */
function tlsConnection(socket: TLSSocket, certificates: readonly X509Certificate[]): Connection {
  return {
    kind: 'tls',
    clientCertificates: certificates.map(({ raw }) => raw),
    isResumed: socket.isSessionReused(),
  };
}

/** Certificates as presented, leaf first. */
function clientCertificates(socket: TLSSocket): readonly X509Certificate[] {
  if (socket.isSessionReused()) return [];
  const certificates: X509Certificate[] = [];
  let next = socket.getPeerX509Certificate();
  while (next !== undefined && certificates.length < MAX_CERTIFICATES) {
    certificates.push(next);
    next = next.issuerCertificate;
  }
  return certificates;
}
