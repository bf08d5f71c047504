/** A request and its response in node:http2. */
import {
  constants,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
  type ServerHttp2Stream,
} from 'node:http2';
import { resetAfterParsing } from '../node-internals/http2-closing.ts';
import { joinSmallChunks } from '../node-internals/small-chunks.ts';
import type { ClientBody, ClientExchange, ClientResponse, HeaderLines } from './client-exchange.ts';

/** @param rawHeaders Node's flat list, with pseudo-headers */
export function http2Exchange(
  stream: ServerHttp2Stream,
  headers: IncomingHttpHeaders,
  rawHeaders: readonly string[],
): ClientExchange {
  return {
    request: {
      protocolVersion: '2.0',
      method: headers[':method'] ?? '',
      scheme: stream.session?.encrypted === true ? 'https' : 'http',
      authority: headers[':authority'] ?? headers.host ?? '',
      pseudoHeaders: { authority: headers[':authority'], scheme: headers[':scheme'] },
      target: headers[':path'] ?? '',
      rawHeaders: withoutPseudoHeaders(rawHeaders),
      body: bodyOf(stream, headers),
      expectsContinue: headers.expect?.toLowerCase() === '100-continue',
      peerAddress: stream.session?.socket.remoteAddress,
    },
    response: new Http2Response(stream, headers[':method'] === 'HEAD'),
  };
}

/** Pseudo-headers come first (RFC 9113 section 8.3); nghttp2 rejects messages in which they do not. */
export function withoutPseudoHeaders(rawHeaders: readonly string[]): string[] {
  let start = 0;
  while (rawHeaders[start]?.startsWith(':') === true) start += 2;
  return rawHeaders.slice(start);
}

function bodyOf(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): ClientBody {
  if (stream.endAfterHeaders) return { kind: 'none' };
  joinSmallChunks(stream);
  const length = headers['content-length'];
  let isWhole = false;
  stream.once('end', () => {
    // Node.js also ends the readable side of a stream that the client has reset with any code.
    isWhole = !stream.closed && !stream.aborted;
  });
  return {
    kind: 'stream',
    stream,
    lengthBytes: length === undefined ? undefined : Number(length),
    isComplete: () => isWhole,
  };
}

/** Maximum time for a client to send an unread body after a response whose trailers must reach it. */
const UNREAD_BODY_MS = 1_000;

class Http2Response implements ClientResponse {
  readonly #stream: ServerHttp2Stream;
  #trailers: HeaderLines = [];
  #isWithoutBody: boolean;
  #mayHaveTrailers = false;
  #isReset = false;

  constructor(stream: ServerHttp2Stream, isHead: boolean) {
    this.#stream = stream;
    this.#isWithoutBody = isHead;
    // A client that leaves is not an error; `close` reports it.
    stream.on('error', () => undefined);
  }

  isGone(): boolean {
    return this.#isReset || this.#stream.destroyed || this.#stream.closed || this.#stream.aborted;
  }

  onGone(listener: () => void): void {
    if (this.isGone()) {
      listener();
      return;
    }
    let isOver = false;
    const leave = () => {
      if (isOver) return;
      isOver = true;
      if (!this.#stream.writableFinished) listener();
    };
    this.#stream.once('aborted', leave).once('close', leave);
  }

  onClosed(listener: () => void): void {
    if (this.#stream.destroyed) listener();
    else this.#stream.once('close', listener);
  }

  hasBegun(): boolean {
    return this.#stream.headersSent;
  }

  sendContinue(): void {
    if (!this.isGone()) this.#stream.additionalHeaders({ ':status': 100 });
  }

  begin(status: number, lines: HeaderLines, mayHaveTrailers: boolean): void {
    if (this.isGone()) return;
    const stream = this.#stream;
    this.#isWithoutBody ||= status === 204 || status === 205 || status === 304;
    const waitForTrailers = mayHaveTrailers && !this.#isWithoutBody;
    stream.respond(
      { ...headersOf(lines), ':status': status },
      { waitForTrailers, endStream: this.#isWithoutBody },
    );
    this.#mayHaveTrailers = waitForTrailers;
    if (!waitForTrailers) return;
    stream.once('wantTrailers', () => stream.sendTrailers(headersOf(this.#trailers)));
  }

  write(chunk: Uint8Array): boolean {
    return this.#isWithoutBody || this.isGone() || this.#stream.write(chunk);
  }

  onceDrained(listener: () => void): void {
    this.#stream.once('drain', listener);
  }

  end(trailers: HeaderLines): void {
    this.#trailers = trailers;
    const stream = this.#stream;
    // The client need not send the rest of its body (RFC 9113 section 8.1). Trailers leave after `finish`.
    if (!stream.endAfterHeaders && !stream.readableEnded) {
      const close = () => stream.close(constants.NGHTTP2_NO_ERROR);
      stream.once('finish', () => setTimeout(close, this.#mayHaveTrailers ? UNREAD_BODY_MS : 0).unref());
    }
    if (!this.isGone()) stream.end();
  }

  destroy(): void {
    this.#isReset = true;
    resetAfterParsing(this.#stream);
  }
}

/** Names in lower case; lines of one name become a list. */
export function headersOf(lines: HeaderLines): OutgoingHttpHeaders {
  const headers: { [name: string]: string | string[] } = Object.create(null);
  for (const [name, value] of lines) {
    const lower = name.toLowerCase();
    const before = headers[lower];
    headers[lower] = before === undefined ? value : [before, value].flat();
  }
  return headers;
}
