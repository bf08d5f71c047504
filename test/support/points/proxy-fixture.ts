/** The reverse proxy in the test's process, with the real verifier for the site of the end-to-end tests. */
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll } from '@jest/globals';
import { Registry } from 'prom-client';
import type { Route, Snapshot } from '../../../src/bundle/compile/snapshot.ts';
import type { ProxyLimits } from '../../../src/enforcement/reverse-proxy/handle-request.ts';
import { createProxyMetrics } from '../../../src/enforcement/reverse-proxy/proxy-metrics.ts';
import { openProxyServer, type ProxyServer } from '../../../src/enforcement/reverse-proxy/proxy-server.ts';
import type { ServerTls } from '../../../src/process/connections/tls-material.ts';
import { openUpstreamPool } from '../../../src/process/http-proxy/upstream-pool.ts';
import type { WireAddress, WireRequest } from '../../../src/tools/conformance/wire/exchange.ts';
import { recordingReplayStore } from '../fakes/replay-store.ts';
import { createTestVerifier, type TestVerifier } from '../fixtures/test-verifier.ts';
import { type Caller, derivedKeyCaller } from '../site/callers.ts';
import type { RequestPlan } from '../site/signed-request.ts';
import { signedRequest } from '../site/signed-request.ts';
import { createSite, nowSeconds, type Site } from '../site/site.ts';
import { loadSnapshot } from './oracle.ts';

export interface OpenProxy {
  readonly address: WireAddress;
  readonly server: ProxyServer;
  readonly verified: TestVerifier;
  /** Value of a metric without labels, or of all its series together. */
  metric(name: string): Promise<number>;
  spooledFiles(): Promise<readonly string[]>;
}

export interface ProxyFixture {
  readonly site: Site;
  readonly caller: Caller;
  /** The compiled bundle; its entries may be replaced. */
  snapshot: Snapshot;
  sign(plan: Omit<RequestPlan, 'caller'> & { readonly caller?: Caller }): WireRequest;
  open(
    upstream: string,
    limits?: Partial<ProxyLimits> & { readonly responseTimeoutMs?: number; readonly tls?: ServerTls },
  ): Promise<OpenProxy>;
}

const LIMITS: Omit<ProxyLimits, 'spoolDirectory'> = {
  maxRequests: 100,
  maxBodyBytes: 2_000_000,
  maxSpoolBytes: 10_000_000,
  bodyTimeoutMs: 10_000,
  idleTimeoutMs: 10_000,
  queueTimeoutMs: 2_000,
};

/** Proxies end after each test. */
export function useProxies(): ProxyFixture {
  let site: Site | undefined;
  let snapshot: Snapshot | undefined;
  const ends: (() => Promise<unknown>)[] = [];
  beforeAll(async () => {
    site = await createSite();
    snapshot = await loadSnapshot(site, await site.makeBundle());
  });
  afterEach(async () => {
    for (const end of ends.splice(0)) await end();
  });
  afterAll(() => site?.remove());
  const started = <T>(value: T | undefined): T => {
    if (value === undefined) throw new Error('not started yet');
    return value;
  };
  return {
    get site() {
      return started(site);
    },
    get caller() {
      return derivedKeyCaller(started(site));
    },
    get snapshot() {
      return started(snapshot);
    },
    set snapshot(changed) {
      snapshot = changed;
    },
    sign(plan) {
      return signedRequest(started(site), { caller: this.caller, ...plan });
    },
    async open(upstream, { responseTimeoutMs = 10_000, tls, ...limits } = {}) {
      const spoolDirectory = await mkdtemp(join(tmpdir(), 'pg-spool-'));
      const registry = new Registry();
      const verified = createTestVerifier({
        currentSnapshot: () => snapshot,
        nowMs: Date.now,
        store: recordingReplayStore(nowSeconds(), 4_000),
      });
      const all = { ...LIMITS, spoolDirectory, ...limits };
      const server = await openProxyServer({
        listen: '127.0.0.1:0',
        tls,
        maxConnections: 100,
        verifier: verified.verifier,
        metrics: createProxyMetrics(registry),
        limits: all,
        pool: openUpstreamPool({
          address: { kind: 'origin', origin: new URL(upstream) },
          tls: undefined,
          maxConnections: 10,
          responseTimeoutMs,
          idleTimeoutMs: all.idleTimeoutMs,
          onConnect: () => undefined,
        }),
        externalOrigin: undefined,
        upstreamHost: undefined,
        tracer: undefined,
        onInternalError: (error) => verified.internalErrors.push(error),
      });
      ends.push(async () => {
        await server.drain(1_000);
        await rm(spoolDirectory, { recursive: true });
      });
      const [host = '', port] = server.address.split(':');
      return {
        address: { host, port: Number(port) },
        server,
        verified,
        metric: async (name) => {
          const { values } = (await registry.getSingleMetric(name)?.get()) ?? { values: [] };
          return values.reduce((sum, { value }) => sum + value, 0);
        },
        spooledFiles: () => readdir(spoolDirectory),
      };
    },
  };
}

/** The snapshot with other routes: what `change` returns for a route. */
export function withRoutes(snapshot: Snapshot, change: (route: Route) => Route, method?: string): Snapshot {
  const { routes } = snapshot;
  return {
    ...snapshot,
    routes: {
      size: routes.size,
      find: (routeId) => routes.find(routeId),
      all: () => routes.all(),
      match: (asked, origin, path) => {
        const found = routes.match(asked === method ? 'GET' : asked, origin, path);
        return found.kind === 'route' ? { ...found, route: change(found.route) } : found;
      },
    },
  };
}

export interface TestUpstream {
  readonly url: string;
  readonly server: Server;
}

/** An API with the given handler; ends after each test. */
export function useUpstreams(): (
  handler: (request: IncomingMessage, response: ServerResponse) => void,
) => Promise<TestUpstream> {
  const ends: (() => void)[] = [];
  afterEach(() => {
    for (const end of ends.splice(0)) end();
  });
  return (handler) =>
    new Promise((resolve) => {
      const sockets = new Set<Socket>();
      const server = createServer(handler);
      server.on('connection', (socket) => {
        sockets.add(socket);
        socket.on('close', () => sockets.delete(socket));
      });
      server.listen(0, '127.0.0.1', () => {
        const { port } = server.address() as AddressInfo;
        ends.push(() => {
          server.close();
          for (const socket of sockets) socket.destroy();
        });
        resolve({ url: `http://127.0.0.1:${port}`, server });
      });
    });
}
