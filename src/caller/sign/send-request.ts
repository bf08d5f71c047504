/**
 * Sends a signed request over HTTP/1.1 with exactly the signed target. It follows no redirect and never retries, because a
 * proof is valid for one request: the caller signs again where a server asks for that.
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
import { checkedCaPem } from '../../process/files/ca-certificates.ts';
import { isBodyBearing } from '../../protocol/body-binding.ts';
import { ClientError } from '../../protocol/client-error.ts';
import type { RequestUrl } from '../request-url.ts';
import type { RequestHeader } from './request-headers.ts';

export interface ConnectAddress {
  readonly host: string;
  readonly port: number;
}

export interface RequestToSend {
  /** Upper case, because Node's HTTP client supports no other. */
  readonly method: string;
  readonly url: RequestUrl;
  /** Headers with the credentials, without `Host`, `Content-Length` and hop-by-hop headers. */
  readonly headers: readonly RequestHeader[];
  readonly body: Uint8Array | undefined;
  /** Timeout of the whole exchange, including the response body. */
  readonly timeoutMs: number;
  /** Certificates (PEM) to trust instead of the system's; https only. */
  readonly caPem: string | undefined;
  /** Connects to this address in place of the URL's host and port; `Host` and the certificate check still use the URL. */
  readonly connectTo: ConnectAddress | undefined;
}

export interface ResponseHead {
  readonly statusCode: number;
  readonly statusText: string;
  /** Headers in the order and spelling of the response. */
  readonly headers: readonly RequestHeader[];
}

/** Must read the body to its end or throw. */
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
    url.scheme === 'https'
      ? httpsRequest({ ...options, ...http1OverTls(url, request.caPem) })
      : httpRequest(options);
  message.setHeader('Host', url.authority);
  for (const { name, value } of request.headers) message.appendHeader(name, value);
  if (request.body !== undefined || isBodyBearing(request.method)) {
    message.setHeader('Content-Length', request.body?.byteLength ?? 0);
  }
  return message;
}

/** Options of node:tls that verify the URL's host, even with another connect address. */
export function certificateChecks(url: RequestUrl, caPem: string | undefined) {
  return {
    // The server name extension cannot contain an IP address (RFC 6066 section 3).
    servername: isIP(url.host) === 0 ? url.host : '',
    // The certificate must match the URL's host, also with another connect address.
    checkServerIdentity: (_connected: string, certificate: Parameters<typeof checkServerIdentity>[1]) =>
      checkServerIdentity(url.host, certificate),
    rejectUnauthorized: true,
    ...(caPem === undefined ? {} : { ca: checkedCaPem(caPem) }),
  };
}

const http1OverTls = (url: RequestUrl, caPem: string | undefined) => ({
  ...certificateChecks(url, caPem),
  ALPNProtocols: ['http/1.1'],
});

function responseTo(
  message: ClientRequest,
  body: Uint8Array | undefined,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    message.on('response', resolve);
    // This listener stays, because connection errors after the start of the response also arrive here.
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

/** Converts a connection error to one without request data. */
function describe(error: NodeJS.ErrnoException): string {
  // A failure on several addresses is an AggregateError without a message.
  return error.message === '' ? (error.code ?? 'no connection') : error.message;
}

function headOf(response: IncomingMessage): ResponseHead {
  const headers: RequestHeader[] = [];
  for (let i = 0; i + 1 < response.rawHeaders.length; i += 2) {
    headers.push({ name: response.rawHeaders[i] ?? '', value: response.rawHeaders[i + 1] ?? '' });
  }
  return { statusCode: response.statusCode ?? 0, statusText: response.statusMessage ?? '', headers };
}
