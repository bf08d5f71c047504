/** One request and one response as they are on the wire, the same for HTTP/1.1 and HTTP/2. */

/** A header line as sent: the name's spelling, repetitions and order are all part of a test. */
export type HeaderLine = readonly [name: string, value: string];

/** How the body's length is announced: by `content-length`, or not at all (`chunked` in HTTP/1.1, open-ended in HTTP/2). */
export type Framing = 'length' | 'open';

export interface WireRequest {
  readonly method: string;
  /** Sent as it is: the request target of HTTP/1.1, `:path` of HTTP/2. */
  readonly target: string;
  /** `Host` in HTTP/1.1, `:authority` in HTTP/2; an empty string leaves it out. */
  readonly authority: string;
  /** `:scheme`; HTTP/1.1 has no place for it outside an absolute target. Default `http`. */
  readonly scheme?: string;
  readonly headers?: readonly HeaderLine[];
  readonly body?: Uint8Array | string;
  /** With trailers the length is never announced. */
  readonly trailers?: readonly HeaderLine[];
  /** Default `length` in HTTP/1.1, `open` in HTTP/2, as callers of each commonly do. */
  readonly framing?: Framing;
}

export interface WireResponse {
  readonly status: number;
  /** Header lines in order, with names in lower case; repeated lines are not joined. */
  readonly headers: readonly HeaderLine[];
  readonly body: Buffer;
}

/** Where to connect; `tls` are node:tls options (`ca`, `cert`, `key`, `servername`, …). */
export interface WireAddress {
  readonly host: string;
  readonly port: number;
  readonly tls?: Readonly<Record<string, unknown>>;
}

export interface WireClient {
  readonly protocol: 'HTTP/1.1' | 'HTTP/2';
  /** Sends one request on its own connection. Rejects with {@link NoResponse} when no answer arrives. */
  send(request: WireRequest): Promise<WireResponse>;
}

/** The peer closed, reset or stayed silent instead of answering. */
export class NoResponse extends Error {
  readonly kind: 'closed' | 'reset' | 'timeout';

  constructor(kind: 'closed' | 'reset' | 'timeout', detail: string) {
    super(`no response (${kind}): ${detail}`);
    this.name = 'NoResponse';
    this.kind = kind;
  }
}

/** The peer answered with bytes that are not a response. */
export class NotHttp extends Error {
  override readonly name = 'NotHttp';
}

export const defaultExchangeTimeoutMs = 10_000;

/** All values of one name, in order. */
export function headerValues(headers: readonly HeaderLine[], name: string): readonly string[] {
  const wanted = name.toLowerCase();
  return headers.filter(([key]) => key.toLowerCase() === wanted).map(([, value]) => value);
}

/** Converts Node's flat list of headers, such as `[a, 1, b, 2]`, to lines. */
export function pairs(flat: readonly string[]): readonly HeaderLine[] {
  return flat.flatMap((name, index): readonly HeaderLine[] =>
    index % 2 === 0 ? [[name, flat[index + 1] ?? '']] : [],
  );
}

export function bodyBytes(request: WireRequest): Buffer | undefined {
  return request.body === undefined ? undefined : Buffer.from(request.body);
}
