/**
 * HTTP client of Control and brokers for workloads. For retries it distinguishes a response, a request that was never
 * sent, and one that the service may have processed.
 */
import type { PeerCertificate } from 'node:tls';
import { Agent, type Dispatcher, errors } from 'undici';
import { checkedCaPem } from '../../process/files/ca-certificates.ts';
import { parseRetryAfterMs } from '../../protocol/retry-after.ts';
import type { ServiceUrl } from './service-url.ts';

export interface ServiceRequest {
  readonly method: 'GET' | 'POST';
  /** Path below the base URL, beginning with `/v1/`. */
  readonly path: string;
  readonly authorization: string | undefined;
  /** JSON text. */
  readonly body: string | undefined;
  /** Timeout of the whole exchange, including the response body. */
  readonly timeoutMs: number;
  /** Cancels the request. */
  readonly stop: AbortSignal;
}

/** The service sent no response. */
export type NoReply =
  /** The request was never sent. `cause`: the system error code, such as `ECONNREFUSED`. */
  | { readonly kind: 'unreachable'; readonly cause: string }
  /** The service may have processed the request. */
  | { readonly kind: 'unclear'; readonly cause: NoAnswerCause };

export type ServiceReply =
  | NoReply
  | {
      readonly kind: 'answer';
      readonly statusCode: number;
      /** Media type, lower case, without parameters. */
      readonly mediaType: string;
      /** Valid UTF-8 of bounded length. */
      readonly body: string;
      /** Wait that `Retry-After` requests. */
      readonly retryAfterMs: number | undefined;
    };

export type NoAnswerCause = 'timed_out' | 'stopped' | 'connection_lost' | 'answer_invalid';

/** Response limit: a client may have grants for all routes of a large site, each with a profile. */
const MAX_ANSWER_BYTES = 4 * 1024 * 1024;
/** Shorter than the request timeout, to distinguish a host that drops packets from one that is slow to respond. */
const CONNECT_TIMEOUT_MS = 5000;

export interface ServiceConnection {
  readonly url: ServiceUrl;
  /** Certificates (PEM) to trust instead of the system's. */
  readonly caPem: string | undefined;
  /** For TLS client authentication. Each connection authenticates: no TLS session is resumed. */
  readonly clientCertificate?: ClientCertificate;
  /** Replaces the comparison of the server's certificate with the host name. Returns the reason to refuse it. */
  readonly checkServer?: (certificate: PeerCertificate) => Error | undefined;
}

export interface ClientCertificate {
  /** Certificates in PEM, leaf first. */
  readonly chainPem: string;
  /** Private key in PKCS#8. */
  readonly keyPem: string;
}

export class ServiceHttp {
  readonly #url: ServiceUrl;
  readonly #agent: Agent;

  /** @throws ClientError `ca_invalid` */
  constructor({ url, caPem, clientCertificate, checkServer }: ServiceConnection) {
    this.#url = url;
    this.#agent = new Agent({
      connections: 1,
      maxResponseSize: MAX_ANSWER_BYTES,
      // The request's own timeout covers the whole exchange.
      headersTimeout: 0,
      bodyTimeout: 0,
      connect: {
        timeout: CONNECT_TIMEOUT_MS,
        rejectUnauthorized: true,
        ...(clientCertificate === undefined ? {} : clientOptions(clientCertificate)),
        ...(checkServer === undefined
          ? {}
          : { checkServerIdentity: (_host: string, certificate) => checkServer(certificate) }),
        ...(caPem === undefined ? {} : { ca: checkedCaPem(caPem) }),
      },
    });
  }

  /** Sends the request once and follows no redirect. Never rejects. */
  async exchange(request: ServiceRequest): Promise<ServiceReply> {
    const timeUp = AbortSignal.timeout(request.timeoutMs);
    try {
      const answer = await this.#agent.request(
        this.#options(request, AbortSignal.any([timeUp, request.stop])),
      );
      return await readAnswer(answer);
    } catch (error) {
      if (request.stop.aborted) return { kind: 'unclear', cause: 'stopped' };
      if (timeUp.aborted) return { kind: 'unclear', cause: 'timed_out' };
      return faultOf(error);
    }
  }

  close(): Promise<void> {
    return this.#agent.destroy();
  }

  #options({ method, path, authorization, body }: ServiceRequest, signal: AbortSignal) {
    return {
      origin: this.#url.origin,
      path: `${this.#url.pathPrefix}${path}`,
      method,
      signal,
      body: body ?? null,
      headers: {
        accept: 'application/json, application/problem+json',
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(authorization === undefined ? {} : { authorization }),
      },
    };
  }
}

/** A broker refuses a resumed session, because it proves nothing about the client's key. */
function clientOptions({ chainPem, keyPem }: ClientCertificate) {
  return { cert: chainPem, key: keyPem, maxCachedSessions: 0 };
}

const utf8 = new TextDecoder('utf-8', { fatal: true });

async function readAnswer(answer: Dispatcher.ResponseData): Promise<ServiceReply> {
  const bytes = await answer.body.bytes();
  const { statusCode, headers } = answer;
  try {
    return {
      kind: 'answer',
      statusCode,
      mediaType: String(headers['content-type'] ?? '')
        .replace(/;.*$/s, '')
        .trim()
        .toLowerCase(),
      body: utf8.decode(bytes),
      retryAfterMs: parseRetryAfterMs(headers['retry-after'], Date.now()),
    };
  } catch {
    return { kind: 'unclear', cause: 'answer_invalid' };
  }
}

/** Errors of name resolution, connecting and certificate verification, before any byte of the request was sent. */
const BEFORE_SENDING =
  /^(?:ECONNREFUSED|ENOTFOUND|EAI_[A-Z]+|UND_ERR_CONNECT_TIMEOUT|CERT_[A-Z_]+|DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_[A-Z_]+|ERR_TLS_CERT_ALTNAME_INVALID)$/;

function faultOf(error: unknown): ServiceReply {
  const code = typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : '';
  if (BEFORE_SENDING.test(code)) return { kind: 'unreachable', cause: code };
  const isTooLarge = code === 'UND_ERR_RES_EXCEEDED_MAX_SIZE' || code === 'UND_ERR_HEADERS_OVERFLOW';
  const isNotHttp = error instanceof errors.HTTPParserError;
  return { kind: 'unclear', cause: isTooLarge || isNotHttp ? 'answer_invalid' : 'connection_lost' };
}
