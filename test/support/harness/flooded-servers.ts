/** Starts each HTTP server of the product as a process of its own, for floods of one-byte chunks. */
import { mkdtemp, writeFile } from 'node:fs/promises';
import type { TcpSocketConnectOpts } from 'node:net';
import { join } from 'node:path';
import { CHECK_PATH } from '../../../src/enforcement/ext-authz-http/profiles.ts';
import type { HeaderLine } from '../../../src/tools/conformance/wire/exchange.ts';
import { requestLines } from '../../../src/tools/conformance/wire/http2.ts';
import { startRecordedProxy } from '../../e2e/proxy/proxy-fixture.ts';
import { makeBrokerFolder, startBrokerProgram } from '../broker/broker-program.ts';
import { ORIGIN, writeBillingKey } from '../caller/egress-fixture.ts';
import { ControlStage } from '../control/control-fixture.ts';
import { adminUrl } from '../control/control-instance.ts';
import { SpiffeAuthority } from '../fakes/spiffe-authority.ts';
import type { DisturbedAppSettings } from '../points/disturbed-app.ts';
import { usualOptions } from '../points/open-middleware.ts';
import { derivedKeyCaller } from '../site/callers.ts';
import { AUTHORITY, ROUTES, type SiteRoute } from '../site/routes.ts';
import { signedRequest } from '../site/signed-request.ts';
import type { Site } from '../site/site.ts';
import { startVerifier } from '../site/verifier.ts';
import { httpGet } from '../wait.ts';
import { startChild } from './child.ts';
import { proofgateCommand } from './program.ts';
import { runTypescript } from './run-typescript.ts';

export interface FloodedServer {
  readonly pid: number;
  /** What a proxy in front makes of a request. */
  asSent?(head: Head): Head;
  readonly address: Pick<TcpSocketConnectOpts, 'host' | 'port'> | { readonly path: string };
  /** Asks whether the process lives. */
  livez(): Promise<{ readonly status: number }>;
  readonly livezStatus: number;
  /** Maximum size of all bodies that it receives, MiB. */
  readonly allowedMib: number;
  stop(): Promise<unknown>;
}

/** Method, target and header lines of a request with a body. */
export interface Head {
  readonly method: string;
  readonly target: string;
  readonly lines: readonly HeaderLine[];
}

/** The request of a caller; of a stranger when its proof is left out. */
export function headOf(site: Site, route: SiteRoute, isStranger: boolean): Head {
  const request = signedRequest(site, {
    ...{ caller: derivedKeyCaller(site), route },
    ...{ body: 'a', framing: 'open' as const },
  });
  const lines = requestLines(request).filter(
    ([name]) => !name.startsWith(':') && !(isStranger && /^(authorization|x-proofgate-)/i.test(name)),
  );
  return { method: request.method, target: request.target, lines: [['Host', AUTHORITY], ...lines] };
}

const json = (target: string): Head => ({
  method: 'POST',
  target,
  lines: [
    ['Host', 'localhost'],
    ['Content-Type', 'application/json'],
  ],
});

export interface ServerKind {
  start(site: Site): Promise<FloodedServer>;
  /** Head of a request by a client without credentials. */
  readonly head: (site: Site) => Head;
  /** Whether callers prove themselves to it with a proof in the head of the request. */
  readonly hasProofs: boolean;
}

const ofStranger = (site: Site) => headOf(site, ROUTES.createOrder, true);
const livezOf = (url: string) => () => httpGet(url, 120_000);

async function startSigner(site: Site, api: boolean): Promise<FloodedServer> {
  const folder = await mkdtemp(join(site.directory, 'signer-'));
  const [key, path, token] = [join(folder, 'key.pem'), join(folder, 's.sock'), join(folder, 'token')];
  await writeBillingKey(site, key);
  await writeFile(token, `${'t'.repeat(32)}\n`, { mode: 0o600 });
  const signer = startChild(
    proofgateCommand([
      ...['signer', '--key', key, '--admin-listen', '127.0.0.1:0'],
      ...(api ? ['--api-listen', `unix:${path}`] : ['--listen', `unix:${path}`, '--upstream', ORIGIN]),
    ]),
  );
  const [, admin] = await signer.waitForLine(/"admin_listen":"([^"]+)"/);
  return {
    ...{ pid: signer.pid, address: { path }, livez: livezOf(`http://${admin}/livez`), livezStatus: 200 },
    // 256 requests of the API, 2,048 of the proxy, each with 64 KiB in memory.
    allowedMib: api ? 16 : 128,
    stop: () => signer.stop(),
  };
}

const middleware = (kind: DisturbedAppSettings['kind']): ServerKind => ({
  hasProofs: true,
  head: ofStranger,
  async start(site) {
    const options = await usualOptions(site, await site.makeBundle());
    const child = runTypescript('../points/disturbed-app.ts', { kind, options });
    const [, port] = await child.waitForLine(/^port (\d+)$/);
    const [, health] = await child.waitForLine(/^health (\d+)$/);
    const address = { host: '127.0.0.1', port: Number(port) };
    return {
      ...{ pid: child.pid, address, allowedMib: 64, livez: livezOf(`http://127.0.0.1:${health}/`) },
      livezStatus: 200,
      stop: () => child.stop(),
    };
  },
});

export const FLOODED: { readonly [name: string]: ServerKind } = {
  proxy: {
    hasProofs: true,
    head: ofStranger,
    async start(site) {
      const proxy = await startRecordedProxy(site, { flags: ['--max-requests', '1000'] });
      const { pid, livezUrl } = proxy.process;
      return {
        ...{ pid, address: proxy.address, livez: livezOf(livezUrl), livezStatus: 200 },
        // 1,000 requests with 64 KiB in memory.
        allowedMib: 62.5,
        stop: proxy.stop,
      };
    },
  },
  'forward-auth server': {
    hasProofs: true,
    head: ofStranger,
    async start(site) {
      const path = join(await mkdtemp(join(site.directory, 'http-')), 'h.sock');
      const verifier = await startVerifier(site, {
        bundleDirectory: await site.makeBundle(),
        replay: 'memory',
        flags: [
          ...['--external-origin', `http://${AUTHORITY}`, '--http-listen', `unix:${path}`],
          ...['--http-profile', 'traefik', '--http-body', 'forwarded'],
        ],
      });
      const { livezUrl, pid } = verifier;
      return {
        ...{ pid, address: { path }, livez: livezOf(livezUrl), livezStatus: 200, allowedMib: 64 },
        asSent: ({ lines, method, target }) => ({
          method,
          target: CHECK_PATH,
          lines: [...lines, ['X-Forwarded-Method', method], ['X-Forwarded-Uri', target]],
        }),
        stop: () => verifier.stop(),
      };
    },
  },
  'middleware of node:http': middleware('node'),
  'middleware of Fastify': middleware('fastify'),
  'egress proxy of the signer': {
    hasProofs: false,
    head: () => ({ method: 'POST', target: '/v1/orders', lines: [['Host', 'localhost']] }),
    start: (site) => startSigner(site, false),
  },
  'signing API': {
    hasProofs: false,
    head: () => json('/v1/proofs'),
    start: (site) => startSigner(site, true),
  },
  broker: {
    hasProofs: false,
    head: () => json('/v1/passports'),
    async start() {
      const folder = await makeBrokerFolder(SpiffeAuthority.create('shop.example'));
      const path = join(folder.path, 'b.sock');
      const { adminUrl, child } = await startBrokerProgram(folder, { socketPath: path });
      const stop = async () => {
        await child.stop();
        await folder.remove();
      };
      // The least that an incomplete body counts is 16 KiB, in all 16 MiB.
      return {
        ...{ pid: child.pid, address: { path }, livez: livezOf(`${adminUrl}/livez`), livezStatus: 200 },
        ...{ allowedMib: 16, stop },
      };
    },
  },
  Control: {
    hasProofs: false,
    head: () => json('/v1/enrollments'),
    async start() {
      const stage = await ControlStage.start({ isEmpty: true });
      const { hostname: host, port } = new URL(stage.controlUrl);
      return {
        ...{ pid: stage.control.pid, address: { host, port: Number(port) }, allowedMib: 16 },
        ...{
          livez: livezOf(adminUrl(stage.control.stderrLines, '/livez') ?? ''),
          livezStatus: 200,
          stop: () => stage.stop(),
        },
      };
    },
  },
};
