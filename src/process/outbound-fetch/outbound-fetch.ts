/**
 * Fetches an issuer's metadata: one GET over HTTPS for one JSON document, hardened against hostile URLs and servers. No
 * redirects, cookies, credentials, proxies of the environment, kept connections or compressed bodies. Size and total time, from lookup to
 * last byte, are limited. Every failure has a code.
 *
 * Source: docs/operate/control.md "Outbound fetches".
 */
import { X509Certificate } from 'node:crypto';
import { lookup } from 'node:dns/promises';
import { createSecureContext, rootCertificates, type SecureContext } from 'node:tls';
import { Client, type Dispatcher, errors } from 'undici';
import { parseStrictJson } from '../../protocol/strict-json.ts';
import type { IssuerNetwork } from './address-policy.ts';
import type { FetchFailure, FetchFailureCode } from './fetch-failures.ts';
import { readFetchableUrl } from './fetchable-url.ts';
import {
  type FetchFlags,
  GuardedConnection,
  type GuardOptions,
  type ResolveName,
} from './guarded-connection.ts';

export const MAX_RESPONSE_BYTES = 256 * 1024;
const MAX_RESPONSE_HEADER_BYTES = 16 * 1024;
export const FETCH_TIMEOUT_MS = 5_000;

export type JsonFetch =
  | { readonly kind: 'fetched'; readonly text: string; readonly value: unknown }
  | ({ readonly kind: 'failed' } & FetchFailure);

/** The interface of the fetcher, for other parts and for tests. */
export interface JsonFetcher {
  /** Never rejects. */
  fetchJson(url: string): Promise<JsonFetch>;
}

export interface IssuerFetcherOptions {
  /** Ranges that the administrator opened. */
  readonly openedNetworks?: readonly IssuerNetwork[];
  /** Trusted in addition to Node's public CAs. @see readIssuerCa */
  readonly privateCa?: readonly string[];
  /** From the first look-up to the last byte. */
  readonly timeoutMs?: number;
  readonly maxBytes?: number;
  /** Default: the system's resolver. */
  readonly resolveName?: ResolveName;
  /** Sends every connection through this HTTP proxy. */
  readonly proxy?: URL | undefined;
  /** Settings that messages name; default: Control's. */
  readonly flags?: FetchFlags;
  /** Default: the server's certificate is checked against the CAs and the host name. */
  readonly serverProblem?: GuardOptions['serverProblem'];
}

const CONTROL_FLAGS: FetchFlags = {
  network: '--allow-issuer-network',
  caFile: '--issuer-ca-file',
  proxy: '--issuer-proxy',
};

/** The certificates of a PEM file; undefined when it contains none or an invalid one. */
export function readIssuerCa(pem: string): readonly string[] | undefined {
  const certificates = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  try {
    for (const certificate of certificates) new X509Certificate(certificate);
  } catch {
    return undefined;
  }
  return certificates.length === 0 ? undefined : certificates;
}

export class IssuerFetcher implements JsonFetcher {
  readonly #guard: GuardOptions;
  readonly #timeoutMs: number;
  readonly #maxBytes: number;

  constructor(options: IssuerFetcherOptions = {}) {
    this.#guard = {
      openedNetworks: options.openedNetworks ?? [],
      resolveName: options.resolveName ?? resolveBySystem,
      secureContext: secureContextWith(options.privateCa),
      flags: options.flags ?? CONTROL_FLAGS,
      proxy: options.proxy,
      ...(options.serverProblem && { serverProblem: options.serverProblem }),
    };
    this.#timeoutMs = options.timeoutMs ?? FETCH_TIMEOUT_MS;
    this.#maxBytes = options.maxBytes ?? MAX_RESPONSE_BYTES;
  }

  async fetchJson(url: string): Promise<JsonFetch> {
    const reading = readFetchableUrl(url);
    if (reading.kind === 'refused') return failed(reading.code, reading.detail);
    const fetched = await this.#fetch(reading.url);
    return fetched.kind === 'fetched' ? fetched : { ...fetched, detail: `${fetched.detail}: GET ${url}` };
  }

  async #fetch(url: URL): Promise<JsonFetch> {
    const connection = new GuardedConnection(this.#guard);
    const client = new Client(url.origin, {
      connect: connection.connector,
      maxHeaderSize: MAX_RESPONSE_HEADER_BYTES,
      // The timeout below covers the whole fetch and replaces those of single phases.
      headersTimeout: 0,
      bodyTimeout: 0,
      // Connections are not kept.
      pipelining: 0,
    });
    const end = () => {
      connection.close();
      // Not an AbortSignal: undici observes one only once the request is sent, not during lookup and handshake.
      client.destroy().catch(() => {});
    };
    let isLate = false;
    const timer = setTimeout(() => {
      isLate = true;
      end();
    }, this.#timeoutMs);
    try {
      return await getJson(client, url, this.#maxBytes);
    } catch (error) {
      if (isLate) return failed('response_too_slow', `no complete answer within ${this.#timeoutMs} ms`);
      return { kind: 'failed', ...(connection.failure ?? failureOf(error)) };
    } finally {
      clearTimeout(timer);
      end();
    }
  }
}

/** Resolves like every other program on this machine, including `/etc/hosts`. */
export async function resolveBySystem(hostname: string): Promise<readonly string[]> {
  return (await lookup(hostname, { all: true })).map(({ address }) => address);
}

function secureContextWith(privateCa: readonly string[] | undefined): SecureContext {
  const ca = privateCa === undefined ? {} : { ca: [...rootCertificates, ...privateCa] };
  return createSecureContext({ minVersion: 'TLSv1.2', ...ca });
}

async function getJson(client: Client, url: URL, maxBytes: number): Promise<JsonFetch> {
  const response = await client.request({
    method: 'GET',
    path: `${url.pathname}${url.search}`,
    headers: {
      accept: 'application/json, application/jwk-set+json',
      // Uncompressed, so that the size on the wire is the size of the document.
      'accept-encoding': 'identity',
      'user-agent': 'proofgate',
    },
  });
  const body = response.body;
  // Discarding the response ends its body with an error, which would be unhandled without a listener.
  body.on('error', () => {});
  const refusal = refusalOfHead(response);
  if (refusal !== undefined) return { kind: 'failed', ...refusal };
  const bytes = await readAtMost(body, maxBytes);
  if (bytes === undefined) return failed('response_too_large', `more than ${maxBytes} bytes`);
  return parseBody(bytes);
}

const JSON_TYPES: ReadonlySet<string> = new Set(['application/json', 'application/jwk-set+json']);

function refusalOfHead({ statusCode, headers }: Dispatcher.ResponseData): FetchFailure | undefined {
  if (statusCode >= 300 && statusCode < 400) {
    return {
      code: 'redirect_refused',
      detail: `status ${statusCode}; enter the URL that it ends at, if you trust it`,
    };
  }
  if (statusCode !== 200) return { code: 'http_status', detail: `status ${statusCode} in place of 200` };
  const type = headers['content-type'];
  // A repeated header is an array.
  if (typeof type !== 'string' || !JSON_TYPES.has((type.split(';')[0] ?? '').trim().toLowerCase())) {
    return { code: 'content_type', detail: `must be one of: ${[...JSON_TYPES].join(', ')}` };
  }
  const encoding = headers['content-encoding'];
  if (encoding !== undefined && encoding !== 'identity') {
    return { code: 'content_encoding', detail: 'the body is encoded although that was not asked for' };
  }
  return undefined;
}

/** Undefined when the body is larger than `maxBytes`. */
async function readAtMost(body: AsyncIterable<unknown>, maxBytes: number): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let byteLength = 0;
  for await (const chunk of body) {
    if (!Buffer.isBuffer(chunk)) return undefined;
    byteLength += chunk.length;
    if (byteLength > maxBytes) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

function parseBody(bytes: Buffer): JsonFetch {
  try {
    const text = utf8.decode(bytes);
    return { kind: 'fetched', text, value: parseStrictJson(text) };
  } catch {
    return failed('body_malformed', 'is not JSON in UTF-8, or names a member twice in one object');
  }
}

function failureOf(error: unknown): FetchFailure {
  if (error instanceof errors.HeadersOverflowError) {
    return { code: 'response_too_large', detail: `headers of more than ${MAX_RESPONSE_HEADER_BYTES} bytes` };
  }
  return { code: 'connection_failed', detail: 'the connection ended, or the answer was no HTTP/1.1' };
}

function failed(code: FetchFailureCode, detail: string): JsonFetch {
  return { kind: 'failed', code, detail };
}
