/**
 * Sends a signed request over HTTP/1.1 with exactly the target that was signed, once: no redirect is followed
 * and nothing is sent again, since a proof is good for one request.
 */
import {
  type ClientRequest,
  request as httpRequest,
  type IncomingMessage,
  type RequestOptions,
} from 'node:http';
import { request as httpsRequest } from 'node:https';
import { isIP } from 'node:net';
import type { Readable } from 'node:stream';
import { checkServerIdentity } from 'node:tls';
import { isBodyBearing } from '../protocol/body-binding.ts';
import { checkedCaPem } from './ca-certificates.ts';
import { ClientError } from './client-error.ts';
import type { RequestHeader } from './request-headers.ts';
import type { RequestUrl } from './request-url.ts';

export interface ConnectAddress {
  readonly host: string;
  readonly port: number;
}

export interface RequestToSend {
  /** Upper case: Node's HTTP client knows no other. */
  readonly method: string;
  readonly url: RequestUrl;
  /** The credentials among them; never `Host`, `Content-Length` or a header of one connection. */
  readonly headers: readonly RequestHeader[];
  readonly body: Uint8Array | undefined;
  /** For the whole exchange, the answer's body included. */
  readonly timeoutMs: number;
  /** Certificates (PEM) to trust instead of the system's; https only. */
  readonly caPem: string | undefined;
  /** Where to connect instead of the URL's host and port; name and certificate stay the URL's. */
  readonly connectTo: ConnectAddress | undefined;
}

export interface ResponseHead {
  readonly statusCode: number;
  readonly statusText: string;
  /** In the order and spelling of the answer. */
  readonly headers: readonly RequestHeader[];
}

/** Must read the body to its end or leave by throwing. */
export type ResponseReceiver<T> = (head: ResponseHead, body: Readable) => Promise<T>;

/** @throws ClientError `method_invalid`, `ca_invalid`, `unreachable`, `response_incomplete`, `timed_out` */
export async function sendRequest<T>(request: RequestToSend, receive: ResponseReceiver<T>): Promise<T> {
  if (request.method !== request.method.toUpperCase() || request.method === 'CONNECT') {
    throw new ClientError('method_invalid', 'only methods in upper case can be sent, and never CONNECT');
  }
  const signal = AbortSignal.timeout(request.timeoutMs);
  const message = openMessage(request, signal);
  try {
    const response = await responseTo(message, request.body, signal);
    try {
      return await receive(headOf(response), response);
    } catch (error) {
      throw response.complete ? error : brokenResponse(error, response, signal);
    }
  } finally {
    message.destroy();
  }
}

function openMessage(request: RequestToSend, signal: AbortSignal): ClientRequest {
  const { url, connectTo } = request;
  const options: RequestOptions = {
    method: request.method,
    path: url.target,
    host: connectTo?.host ?? url.host,
    port: connectTo?.port ?? url.port,
    setHost: false,
    agent: false,
    insecureHTTPParser: false,
    signal,
  };
  const message =
    url.scheme === 'https' ? httpsRequest({ ...options, ...tlsOptions(request) }) : httpRequest(options);
  message.setHeader('Host', url.authority);
  for (const { name, value } of request.headers) message.appendHeader(name, value);
  if (request.body !== undefined || isBodyBearing(request.method)) {
    message.setHeader('Content-Length', request.body?.byteLength ?? 0);
  }
  return message;
}

function tlsOptions({ url, caPem }: RequestToSend) {
  return {
    // An address cannot stand in the server name extension (RFC 6066 section 3).
    servername: isIP(url.host) === 0 ? url.host : '',
    // Whatever address was connected to, the certificate must be the URL's.
    checkServerIdentity: (_connected: string, certificate: Parameters<typeof checkServerIdentity>[1]) =>
      checkServerIdentity(url.host, certificate),
    rejectUnauthorized: true,
    ALPNProtocols: ['http/1.1'],
    ...(caPem === undefined ? {} : { ca: checkedCaPem(caPem) }),
  };
}

function responseTo(
  message: ClientRequest,
  body: Uint8Array | undefined,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    message.on('response', resolve);
    // Stays: after the answer began, errors of the connection reach the answer's stream as well.
    message.on('error', (error: NodeJS.ErrnoException) => {
      reject(signal.aborted ? timedOut() : new ClientError('unreachable', describe(error)));
    });
    message.end(body);
  });
}

function brokenResponse(error: unknown, response: IncomingMessage, signal: AbortSignal): unknown {
  if (signal.aborted) return timedOut();
  return response.destroyed && isConnectionError(error)
    ? new ClientError('response_incomplete', 'the connection ended within the answer')
    : error;
}

function isConnectionError(error: unknown): boolean {
  const code = typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined;
  return code === 'ECONNRESET' || code === 'ERR_STREAM_PREMATURE_CLOSE' || code === 'ABORT_ERR';
}

function timedOut(): ClientError {
  return new ClientError('timed_out', 'no whole answer came in time; the request may have been carried out');
}

/** The error of a connection, which holds nothing of the request. */
function describe(error: NodeJS.ErrnoException): string {
  // Several addresses tried in vain come as an AggregateError without a message of its own.
  return error.message === '' ? (error.code ?? 'no connection') : error.message;
}

function headOf(response: IncomingMessage): ResponseHead {
  const headers: RequestHeader[] = [];
  for (let i = 0; i + 1 < response.rawHeaders.length; i += 2) {
    headers.push({ name: response.rawHeaders[i] ?? '', value: response.rawHeaders[i + 1] ?? '' });
  }
  return { statusCode: response.statusCode ?? 0, statusText: response.statusMessage ?? '', headers };
}
