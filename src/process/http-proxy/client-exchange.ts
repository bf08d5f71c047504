/** One request of a client and its response, the same over HTTP/1.1 and HTTP/2. */
import type { Duplex, Readable } from 'node:stream';
import type { HeaderLine } from './raw-headers.ts';

/** Header lines as on the wire: spelling, order and repetitions kept, one character for each byte. */
export type HeaderLines = readonly HeaderLine[];

/** A request as received, without normalization. */
export interface ClientRequest {
  /** For `Via` (RFC 9110 section 7.6.3). */
  readonly protocolVersion: '1.0' | '1.1' | '2.0';
  readonly method: string;
  /** Scheme of the connection. */
  readonly scheme: 'http' | 'https';
  /** `Host`, or `:authority`; empty when it is missing. */
  readonly authority: string;
  /** `:authority` and `:scheme` of HTTP/2. */
  readonly pseudoHeaders?: { readonly authority: string | undefined; readonly scheme: string | undefined };
  readonly target: string;
  /** Node's flat list of names and values, without pseudo-headers. */
  readonly rawHeaders: readonly string[];
  readonly body: ClientBody;
  /** Whether the client waits for 100 before it sends the body (RFC 9110 section 10.1.1). */
  readonly expectsContinue: boolean;
  /** Address of the peer; undefined on a Unix socket. */
  readonly peerAddress: string | undefined;
}

export type ClientBody = { readonly kind: 'none' } | StreamedBody;

export interface StreamedBody {
  readonly kind: 'stream';
  readonly stream: Readable;
  /** Announced length in bytes; undefined when the client announced none. */
  readonly lengthBytes: number | undefined;
  /** Whether all of it has arrived, after the stream ended. */
  readonly isComplete: () => boolean;
}

export interface ClientResponse {
  /** Whether the response can no longer reach the client. */
  isGone(): boolean;
  /** Calls the listener once, when the client leaves before the response has ended; at once if it has already left. */
  onGone(listener: () => void): void;
  /** Calls the listener once, when the exchange has ended for any reason. */
  onClosed(listener: () => void): void;
  hasBegun(): boolean;
  /** Sends `100 Continue`. */
  sendContinue(): void;
  /**
   * Sends status and headers.
   * @param mayHaveTrailers whether the end may carry trailers
   * @throws Error for a status or header that cannot be sent
   */
  begin(status: number, lines: HeaderLines, mayHaveTrailers: boolean): void;
  /** @returns false when the client does not keep up: wait for {@link onceDrained} */
  write(chunk: Uint8Array): boolean;
  onceDrained(listener: () => void): void;
  end(trailers: HeaderLines): void;
  /** Aborts the response, so that the client does not consider it complete. */
  destroy(): void;
}

/** A request that asks to switch protocols (RFC 9110 section 7.8). */
export interface ClientUpgrade {
  /** Sends 101 and returns the connection. */
  accept(lines: HeaderLines): Duplex;
}

export interface ClientExchange {
  readonly request: ClientRequest;
  readonly upgrade?: ClientUpgrade;
  readonly response: ClientResponse;
}
