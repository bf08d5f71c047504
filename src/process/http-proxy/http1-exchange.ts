/** A request and its response in node:http. */
import { type IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { joinSmallChunks } from '../node-internals/small-chunks.ts';
import type { ClientBody, ClientExchange, ClientResponse, HeaderLines } from './client-exchange.ts';
import { discardRestOfBody } from './discard-rest-of-body.ts';
import { onSocketClose } from './socket-close.ts';

export interface Http1Context {
  readonly expectsContinue: boolean;
  /** Whether connections must end with their current response. */
  readonly isDraining: () => boolean;
}

export function http1Exchange(
  request: IncomingMessage,
  response: ServerResponse,
  { expectsContinue, isDraining }: Http1Context,
): ClientExchange {
  discardRestOfBody(request, response);
  return {
    request: {
      protocolVersion: request.httpVersion === '1.1' ? '1.1' : '1.0',
      method: request.method ?? '',
      scheme: request.socket instanceof TLSSocket ? 'https' : 'http',
      authority: request.headers.host ?? '',
      target: request.url ?? '',
      rawHeaders: request.rawHeaders,
      body: bodyOf(request),
      expectsContinue,
      peerAddress: request.socket.remoteAddress,
    },
    response: new Http1Response(request, response, isDraining),
  };
}

/** The parser has rejected contradictory and malformed framing; `request-faults.ts` rejects other transfer codings. */
function bodyOf(request: IncomingMessage): ClientBody {
  const { headers } = request;
  const isChunked = headers['transfer-encoding'] !== undefined;
  const length = headers['content-length'];
  if (!isChunked && (length === undefined || /^0+$/.test(length))) return { kind: 'none' };
  joinSmallChunks(request);
  return {
    kind: 'stream',
    stream: request,
    lengthBytes: isChunked ? undefined : Number(length),
    isComplete: () => request.complete,
  };
}

/**
 * Node.js removes its parser and listeners from a connection that asks to switch protocols, and creates no response.
 * This creates one for a refusal, after which the connection ends. @param head bytes after the request
 */
export function http1UpgradeExchange(request: IncomingMessage, socket: Socket, head: Buffer): ClientExchange {
  const response = new ServerResponse(request);
  response.shouldKeepAlive = false;
  response.assignSocket(socket);
  response.once('finish', () => socket.end(() => socket.destroy()));
  const exchange = http1Exchange(request, response, { expectsContinue: false, isDraining: () => false });
  return {
    ...exchange,
    upgrade: {
      accept: (lines) => {
        response.detachSocket(socket);
        const head101 = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('');
        socket.write(`HTTP/1.1 101 Switching Protocols\r\n${head101}\r\n`, 'latin1');
        if (head.length > 0) socket.unshift(head);
        return socket;
      },
    },
  };
}

class Http1Response implements ClientResponse {
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  readonly #isDraining: () => boolean;
  readonly #closeListeners: (() => void)[] = [];
  #isClosed = false;

  constructor(request: IncomingMessage, response: ServerResponse, isDraining: () => boolean) {
    this.#request = request;
    this.#response = response;
    this.#isDraining = isDraining;
    // A client that leaves is not an error; `close` reports it.
    request.on('error', () => undefined);
    response.on('error', () => undefined);
    const { socket } = request;
    const close = () => {
      if (this.#isClosed) return;
      this.#isClosed = true;
      forget();
      for (const listener of this.#closeListeners) listener();
    };
    const forget = onSocketClose(socket, close);
    response.once('close', close);
  }

  isGone(): boolean {
    return this.#isClosed || this.#request.socket.destroyed;
  }

  onGone(listener: () => void): void {
    this.onClosed(() => {
      if (!this.#response.writableFinished) listener();
    });
  }

  onClosed(listener: () => void): void {
    if (this.isGone()) listener();
    else this.#closeListeners.push(listener);
  }

  hasBegun(): boolean {
    return this.#response.headersSent;
  }

  sendContinue(): void {
    this.#response.writeContinue();
  }

  begin(status: number, lines: HeaderLines): void {
    const { socket } = this.#request;
    if (this.#isDraining()) this.#response.shouldKeepAlive = false;
    // Head, body and end of a short response arrive together and leave in one write; a stream's head does not wait.
    socket.cork();
    process.nextTick(() => socket.uncork());
    this.#response.writeHead(status, lines.flat());
    this.#response.flushHeaders();
  }

  write(chunk: Uint8Array): boolean {
    return this.#response.write(chunk);
  }

  onceDrained(listener: () => void): void {
    this.#response.once('drain', listener);
  }

  end(trailers: HeaderLines): void {
    if (trailers.length > 0)
      this.#response.addTrailers(trailers.map(([name, value]): [string, string] => [name, value]));
    this.#response.end();
  }

  destroy(): void {
    this.#request.socket.destroy();
  }
}
