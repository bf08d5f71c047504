/**
 * Admin HTTP listener: `/livez`, `/readyz`, `/metrics`. Plain HTTP, for probes and scrapers inside the pod or its
 * network. It exposes no secrets and accepts no commands.
 * Source: docs/operate/enforcement.md "Operations".
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { hasTooManyLines, KEPT_HEADER_LINES } from '../../protocol/header-line-limit.ts';

/** A condition that must hold before the verifier serves requests. */
export interface ReadinessCheck {
  readonly name: string;
  /** One line that describes the problem; undefined when the condition holds. */
  readonly problem: string | undefined;
  /** One line that an operator should look at, although the verifier serves requests. */
  readonly warning?: string | undefined;
  /** Whole seconds until the passport or key that the condition needs expires. */
  readonly secondsLeft?: number | undefined;
  /** IDs of routes that the verifier denies while it serves others. A non-empty list makes the status `degraded`. */
  readonly routes?: readonly string[] | undefined;
  /** The bundle that is loaded. */
  readonly bundle?: LoadedBundle | undefined;
}

export interface LoadedBundle {
  readonly authSite: string;
  readonly revision: number;
  /** base64url SHA-256. */
  readonly head: string;
}

export interface AdminOptions {
  /** `::` listens on every address of this machine, even without IPv6. */
  readonly host: string;
  /** 0 picks a free port. */
  readonly port: number;
  readonly readiness: () => readonly ReadinessCheck[];
  readonly metrics: () => Promise<MetricsText>;
  /** Monotonic clock, milliseconds. Default: `performance.now`. */
  readonly monotonicMs?: () => number;
}

interface MetricsText {
  readonly contentType: string;
  readonly text: string;
}

export interface AdminListener {
  /** `HOST:PORT` with the actual port. */
  readonly address: string;
  close(): Promise<void>;
}

/** How long one rendering of the metrics is cached. */
const METRICS_FRESH_MS = 1_000;

/** Limits on each client and on all of them together. */
const LIMITS = {
  /** Maximum time for a client to send its request's headers, and its whole request, milliseconds. */
  headersTimeout: 5_000,
  requestTimeout: 5_000,
  /** Idle time between two requests of one connection, milliseconds. */
  keepAliveTimeout: 5_000,
  connectionsCheckingInterval: 1_000,
  /** Maximum size of the request headers, bytes. */
  maxHeaderSize: 8 * 1024,
} as const;
const MAX_CONNECTIONS = 32;
const MAX_REQUESTS_OF_CONNECTION = 100;
/** Timeout for a client that does not read its response, milliseconds. */
const IDLE_TIMEOUT_MS = 10_000;

/** @throws Error of the system when it cannot listen on the address */
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
  server.maxHeadersCount = KEPT_HEADER_LINES;
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
 * Renders at most once a second; concurrent scrapes share one rendering. `Cache-Control: no-cache` forces a new one
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
    // Without a host, Node.js listens on `::`, which includes IPv4, and without IPv6 on 0.0.0.0. Source:
    // server.listen() of node:net.
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
  if (hasTooManyLines(request.rawHeaders)) {
    response.writeHead(431, { connection: 'close' }).end();
    return;
  }
  if (request.method !== 'GET' && request.method !== 'HEAD') {
    // The listener does not read the request body.
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
    checks: checks.map(({ bundle, name, problem, routes, secondsLeft, warning }) => ({
      name,
      ok: problem === undefined,
      problem,
      warning,
      seconds_left: secondsLeft,
      routes,
      auth_site: bundle?.authSite,
      revision: bundle?.revision,
      head: bundle?.head,
    })),
  });
}

function sendJson(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(`${JSON.stringify(body)}\n`);
}
