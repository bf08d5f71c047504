/**
 * Connections to the upstream: HTTP/1.1 over TCP, TLS or a Unix socket. undici writes target and headers as given; it follows no
 * redirects, retries nothing and reads no proxy variables of the environment.
 */
import { isIP } from 'node:net';
import type { Readable } from 'node:stream';
import { buildConnector, type Dispatcher, Pool } from 'undici';
import { hostOfUrl } from '../../protocol/url-host.ts';

export interface UpstreamOptions {
  readonly address: UpstreamAddress;
  /** TLS of an `https` upstream, which is always verified. */
  readonly tls: UpstreamTls | undefined;
  /** Maximum number of connections; further requests wait. */
  readonly maxConnections: number;
  /** Maximum time until the response begins, milliseconds. */
  readonly responseTimeoutMs: number;
  /** Maximum time between two parts of a response, milliseconds. */
  readonly idleTimeoutMs: number;
  /** Reports each attempt to connect: undefined when it succeeds, otherwise the code of the error. */
  readonly onConnect: (errorCode: string | undefined) => void;
}

export type UpstreamAddress =
  | { readonly kind: 'origin'; readonly origin: URL }
  | { readonly kind: 'unix'; readonly path: string };

/** Contains a secret. */
export interface UpstreamTls {
  /** PEM of the CAs to trust; undefined for those of Node.js. */
  readonly ca: string | undefined;
  /** Client certificate and key, PEM. */
  readonly client: { readonly cert: string; readonly key: string } | undefined;
  /** Name for SNI and for the certificate check; undefined for the host of the URL. */
  readonly serverName: string | undefined;
}

export interface UpstreamRequest {
  readonly method: string;
  readonly target: string;
  /** Flat list of names and values, `host` included; without framing and hop-by-hop headers. */
  readonly headers: string[];
  readonly body: Buffer | Readable | undefined;
  /** Length of a stream; undefined to send it chunked. */
  readonly lengthBytes: number | undefined;
  /** `websocket` asks for that upgrade. */
  readonly upgrade?: 'websocket' | undefined;
}

/** Controls a request that has started. */
export interface UpstreamController extends Dispatcher.DispatchController {
  /** Protocol version of the connection; undefined for undici's connections, which use HTTP/1.1. */
  readonly protocolVersion?: '2.0';
}

export interface UpstreamPool {
  /** @returns a function that removes the request from the queue, without effect when it has started */
  dispatch(request: UpstreamRequest, handler: Dispatcher.DispatchHandler): () => void;
  /** Closes all connections. */
  destroy(): Promise<void>;
}

export interface Http1Pool extends UpstreamPool {
  /** Uses other TLS files for new connections; requests in progress end on the former ones. */
  setTls(tls: UpstreamTls): void;
}

export const CONNECT_TIMEOUT_MS = 5_000;
/** Shorter than upstreams usually have it, so that a request rarely meets a connection that closes. */
export const KEEP_ALIVE_MS = 4_000;
const KEEP_ALIVE_MAX_MS = 60_000;
export const MAX_RESPONSE_HEADER_BYTES = 65_536;

/** undici accepts this option of a dispatch and does not declare it. */
interface NamedDispatch extends Dispatcher.DispatchOptions {
  readonly servername: string;
}

export type Connector = buildConnector.connector;

/** @param connectorOf called again for other TLS files */
export function openUpstreamPool(
  options: UpstreamOptions,
  connectorOf: (options: UpstreamOptions) => Connector = (current) => upstreamConnector(current, false),
): Http1Pool {
  let pool = createPool(options, connectorOf(options));
  return {
    dispatch: (request, handler) => {
      const { body, headers, lengthBytes, method, target, upgrade } = request;
      const dispatched: NamedDispatch = {
        path: target,
        method,
        headers: lengthBytes === undefined ? headers : [...headers, 'content-length', String(lengthBytes)],
        body: body ?? null,
        upgrade: upgrade ?? null,
        // A constant, because undici would use each request's Host and reconnect when it changes.
        servername: 'upstream',
      };
      pool.dispatch(dispatched, handler);
      // undici cannot remove a request from its queue.
      return () => undefined;
    },
    setTls: (tls) => {
      const former = pool;
      const changed = { ...options, tls };
      pool = createPool(changed, connectorOf(changed));
      former.close().catch(() => undefined);
    },
    destroy: () => pool.destroy(),
  };
}

function createPool(options: UpstreamOptions, connect: Connector): Pool {
  const { address, idleTimeoutMs, maxConnections, responseTimeoutMs } = options;
  return new Pool(address.kind === 'unix' ? 'http://localhost' : address.origin, {
    connections: maxConnections,
    connect,
    pipelining: 1,
    headersTimeout: responseTimeoutMs,
    bodyTimeout: idleTimeoutMs,
    keepAliveTimeout: KEEP_ALIVE_MS,
    keepAliveMaxTimeout: KEEP_ALIVE_MAX_MS,
    maxHeaderSize: MAX_RESPONSE_HEADER_BYTES,
    allowH2: false,
  });
}

/** @param allowH2 whether the upstream may select HTTP/2 */
export function upstreamConnector(
  { address, onConnect, tls }: Pick<UpstreamOptions, 'address' | 'onConnect' | 'tls'>,
  allowH2: boolean,
): Connector {
  const connect = buildConnector({
    timeout: CONNECT_TIMEOUT_MS,
    allowH2,
    // Independent of NODE_TLS_REJECT_UNAUTHORIZED.
    rejectUnauthorized: true,
    minVersion: 'TLSv1.2',
    ...(tls?.ca === undefined ? {} : { ca: tls.ca }),
    ...(tls?.client === undefined ? {} : { cert: tls.client.cert, key: tls.client.key }),
    ...(address.kind === 'unix' ? { socketPath: address.path } : {}),
  });
  const host = address.kind === 'unix' ? '' : hostOfUrl(address.origin);
  // An IP address cannot be an SNI name (RFC 6066 section 3); Node.js then checks the certificate for the address.
  const servername = tls?.serverName ?? (isIP(host) === 0 ? host : '');
  return (connected, callback) =>
    connect({ ...connected, servername }, (...[error, socket]) => {
      if (error === null) {
        onConnect(undefined);
        callback(null, socket);
      } else {
        onConnect(codeOf(error));
        callback(error, null);
      }
    });
}

function codeOf(error: Error): string {
  return 'code' in error && typeof error.code === 'string' ? error.code : 'error';
}
