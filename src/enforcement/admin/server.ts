/**
 * The admin listener: `/livez`, `/readyz`, `/metrics`. Plain HTTP, for probes and scrapers inside the pod or
 * its network; it shows nothing secret and takes no commands.
 * Source: docs/enforcement.md "Operations".
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** One thing that has to be in order before requests can be served. */
export interface ReadinessCheck {
  readonly name: string;
  /** One clear line when it is not in order. */
  readonly problem: string | undefined;
  /** One clear line about what an operator should look at although requests are served. */
  readonly warning?: string | undefined;
  /** IDs of routes that are denied while others are served; their presence makes the status `degraded`. */
  readonly routes?: readonly string[] | undefined;
}

export interface AdminOptions {
  /** `::` is every address of this machine, also where it has no IPv6. */
  readonly host: string;
  /** 0 picks one. */
  readonly port: number;
  readonly readiness: () => readonly ReadinessCheck[];
  readonly metrics: () => Promise<MetricsText>;
  /** Milliseconds on a clock that never goes back. Default: `performance.now`. */
  readonly monotonicMs?: () => number;
}

export interface MetricsText {
  readonly contentType: string;
  readonly text: string;
}

export interface AdminListener {
  /** `HOST:PORT` with the real port. */
  readonly address: string;
  close(): Promise<void>;
}

/** How long one rendering of the metrics is served. */
const METRICS_FRESH_MS = 1_000;

/** What one client, or all of them, may hold. */
const LIMITS = {
  /** Most time for a client to send its request's head, and all of it, milliseconds. */
  headersTimeout: 5_000,
  requestTimeout: 5_000,
  /** Between two requests of one connection, milliseconds. */
  keepAliveTimeout: 5_000,
  connectionsCheckingInterval: 1_000,
  /** Bytes of a request's head. */
  maxHeaderSize: 8 * 1024,
} as const;
const MAX_CONNECTIONS = 32;
const MAX_REQUESTS_OF_CONNECTION = 100;
const MAX_HEADERS = 50;
/** A client that does not take its answer, milliseconds. */
const IDLE_TIMEOUT_MS = 10_000;

/** @throws Error of the system when the address cannot be listened on. */
export async function openAdminListener(options: AdminOptions): Promise<AdminListener> {
  const metrics = metricsSnapshot(options);
  const server = createServer(LIMITS, (request, response) => {
    answer(request, response, { ...options, metrics }).catch(() => {
      if (!response.headersSent) response.writeHead(500);
      response.end();
    });
  });
  server.maxConnections = MAX_CONNECTIONS;
  server.maxRequestsPerSocket = MAX_REQUESTS_OF_CONNECTION;
  server.maxHeadersCount = MAX_HEADERS;
  server.setTimeout(IDLE_TIMEOUT_MS, (socket) => socket.destroy());
  await listen(server, options);
  const { address, family, port } = server.address() as AddressInfo;
  return {
    address: family === 'IPv6' ? `[${address}]:${port}` : `${address}:${port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/**
 * Renders at most once a second, and once for scrapes at the same time. `Cache-Control: no-cache` gets a new rendering
 * (RFC 9111 section 5.2.1.4).
 */
function metricsSnapshot(options: AdminOptions): (request: IncomingMessage) => Promise<MetricsText> {
  const { metrics: render, monotonicMs = () => performance.now() } = options;
  let rendering: Promise<MetricsText> | undefined;
  let snapshot: { readonly metrics: MetricsText; readonly untilMs: number } | undefined;
  const renderAnew = async () => {
    const untilMs = monotonicMs() + METRICS_FRESH_MS;
    try {
      const metrics = await render();
      snapshot = { metrics, untilMs };
      return metrics;
    } finally {
      rendering = undefined;
    }
  };
  return async ({ headers }) => {
    const isFresh = snapshot !== undefined && monotonicMs() < snapshot.untilMs;
    if (snapshot !== undefined && isFresh && headers['cache-control'] !== 'no-cache') return snapshot.metrics;
    rendering ??= renderAnew();
    return rendering;
  };
}

function listen(server: Server, { host, port }: Pick<AdminOptions, 'host' | 'port'>): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    // Node.js takes `::` by itself where there is IPv6, for IPv4 as well, and 0.0.0.0 where there is none: server.listen() of node:net.
    server.listen({ port, ...(host === '::' ? {} : { host }) }, resolve);
  });
}

interface Answers extends Pick<AdminOptions, 'readiness'> {
  readonly metrics: (request: IncomingMessage) => Promise<MetricsText>;
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  { metrics, readiness }: Answers,
): Promise<void> {
  if (request.method !== 'GET' && request.method !== 'HEAD') {
    // What may follow as its body is not waited for.
    response.writeHead(405, { allow: 'GET, HEAD', connection: 'close' }).end();
    return;
  }
  switch (request.url?.split('?', 1)[0]) {
    case '/livez':
      return sendJson(response, 200, { status: 'live' });
    case '/readyz':
      return sendReadiness(response, readiness());
    case '/metrics': {
      const { contentType, text } = await metrics(request);
      response.writeHead(200, { 'content-type': contentType }).end(text);
      return;
    }
    default:
      return sendJson(response, 404, { error: 'not_found', paths: ['/livez', '/readyz', '/metrics'] });
  }
}

function sendReadiness(response: ServerResponse, checks: readonly ReadinessCheck[]): void {
  const ready = checks.every(({ problem }) => problem === undefined);
  const served = checks.some(({ routes }) => routes !== undefined) ? 'degraded' : 'ready';
  sendJson(response, ready ? 200 : 503, {
    status: ready ? served : 'not_ready',
    checks: checks.map(({ name, problem, routes, warning }) => ({
      name,
      ok: problem === undefined,
      problem,
      warning,
      routes,
    })),
  });
}

function sendJson(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(`${JSON.stringify(body)}\n`);
}
