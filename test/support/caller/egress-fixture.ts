/** The egress proxy in the test's process, in front of the reverse proxy with the real verifier. */
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach } from '@jest/globals';
import { Registry } from 'prom-client';
import { RequestSigner, type SignedRequest } from '../../../src/caller/sign/request-signer.ts';
import type { EgressLimits, EgressParts } from '../../../src/caller/signer/egress/egress-handler.ts';
import { createEgressMetrics } from '../../../src/caller/signer/egress/egress-metrics.ts';
import { type EgressServer, openEgressServer } from '../../../src/caller/signer/egress/egress-server.ts';
import { openNegotiatedPool } from '../../../src/process/http-proxy/negotiated-pool.ts';
import { openUpstreamPool, type UpstreamPool } from '../../../src/process/http-proxy/upstream-pool.ts';
import { parseOrigin } from '../../../src/protocol/request-target.ts';
import { readSigningProfiles } from '../../../src/protocol/signing-profile.ts';
import type { WireAddress } from '../../../src/tools/conformance/wire/exchange.ts';
import { AUTHORITY, ROUTES, type SiteRoute } from '../site/routes.ts';
import { AUTH_SITE, CLIENT_ISSUER, type Site, TRUST_DOMAIN } from '../site/site.ts';
import { writeEnrolledKey } from './enrolled-key.ts';

export const ORIGIN = `http://${AUTHORITY}`;
export const SECURE_ORIGIN = `https://${AUTHORITY}`;

export interface OpenEgress {
  readonly address: WireAddress;
  /** Base URL for programs. */
  readonly url: string;
  readonly server: EgressServer;
  readonly signer: RequestSigner;
  readonly signed: SignedRequest[];
  readonly internalErrors: unknown[];
  /** Seconds that the signer's clock was ahead, for each denial. */
  readonly wrongClocks: number[];
  /** Codes of refused requests. */
  readonly refused: string[];
  metric(name: string): Promise<number>;
  spooledFiles(): Promise<readonly string[]>;
}

export interface EgressOptions extends Partial<Pick<EgressParts, 'unsigned' | 'nowMs'>> {
  readonly listen?: string;
  /** Default: {@link billingSigner}. */
  readonly signer?: RequestSigner;
  readonly limits?: Partial<EgressLimits>;
  /**
   * Addresses to connect to, by prefix, with the origin that is signed. Default: the upstream, with its scheme, for all
   * paths.
   */
  readonly routes?: readonly { readonly prefix: string; readonly origin: string; readonly url: string }[];
  readonly responseTimeoutMs?: number;
  /** CA of the certificates of `https` upstreams, which are for {@link AUTHORITY}. */
  readonly caPem?: string;
  readonly maxConnections?: number;
}

const LIMITS: Omit<EgressLimits, 'spoolDirectory'> = {
  maxRequests: 200,
  maxBodyBytes: 20_000_000,
  maxSpoolBytes: 200_000_000,
  bodyTimeoutMs: 10_000,
  idleTimeoutMs: 10_000,
  queueTimeoutMs: 30_000,
};

/**
 * The routes of the site as profiles of its usual caller.
 * @param signsToken whether to sign the application's own `Authorization`, where the route leaves it to the application
 */
export function billingSigner(site: Site, signsToken = false, nowMs = Date.now): RequestSigner {
  const profiles = Object.values<SiteRoute>(ROUTES).map((route) => ({
    ...{ route_id: route.route_id, method: route.method, path_template: route.path_template },
    ...{ audience: route.audience, origins: [ORIGIN, SECURE_ORIGIN] },
    ...{ body: route.body ?? 'bound', signed_headers: route.signed_headers ?? [] },
    ...(route.passport_header && {
      passport_header: route.passport_header,
      signed_headers: signsToken ? ['authorization'] : [],
    }),
  }));
  const file = readSigningProfiles(
    {
      ...{ auth_site: AUTH_SITE, key_id: 'dk_billing', issuer: CLIENT_ISSUER },
      ...{ trust_domain: TRUST_DOMAIN, subject: 'client:billing', key_binding: 'software', profiles },
    },
    'profiles',
  );
  const signer = new RequestSigner({ nowMs });
  signer.replaceIdentity({ key: site.derivedKeys.dk_billing, files: [file], passports: undefined });
  return signer;
}

/** The same in a key file with its state. @param signsToken as for {@link billingSigner} */
export async function writeBillingKey(site: Site, keyFile: string, signsToken = false): Promise<void> {
  const { identity } = billingSigner(site, signsToken);
  const file = identity?.files[0];
  if (identity === undefined || file === undefined) throw new Error('no identity');
  await writeEnrolledKey(keyFile, { key: identity.key, file });
}

/** Proxies end after each test. */
export function useEgress(): (upstream: string, site: Site, options?: EgressOptions) => Promise<OpenEgress> {
  const ends: (() => Promise<unknown>)[] = [];
  afterEach(async () => {
    for (const end of ends.splice(0)) await end();
  });
  return async (upstream, site, options = {}) => {
    const { listen = '127.0.0.1:0', nowMs = Date.now, unsigned = 'deny' } = options;
    const spoolDirectory = await mkdtemp(join(tmpdir(), 'pg-egress-'));
    const registry = new Registry();
    const limits = { ...LIMITS, spoolDirectory, ...options.limits };
    const { signer = billingSigner(site, false, nowMs) } = options;
    const wrongClocks: number[] = [];
    const signed: SignedRequest[] = [];
    const internalErrors: unknown[] = [];
    const refused: string[] = [];
    const server = await openEgressServer({
      listen,
      maxConnections: 200,
      routes: (options.routes ?? [{ prefix: '', origin: originOf(upstream), url: upstream }]).map(
        (route) => ({
          prefix: route.prefix,
          origin: parseOrigin(route.origin) ?? { scheme: 'http', authority: '' },
          pool: openPool(new URL(route.url), options, limits),
        }),
      ),
      signer,
      unsigned,
      limits,
      metrics: { ...createEgressMetrics(registry), refused: (code) => refused.push(code) },
      onSigned: (request) => signed.push(request),
      onPassed: () => undefined,
      onWrongClock: (aheadSeconds) => wrongClocks.push(aheadSeconds),
      nowMs,
      onInternalError: (error) => internalErrors.push(error),
    });
    ends.push(async () => {
      await server.drain(1_000);
      await rm(spoolDirectory, { recursive: true });
    });
    const [host = '', port] = server.address.split(':');
    return {
      address: { host, port: Number(port) },
      url: `http://${server.address}`,
      server,
      signer,
      signed,
      internalErrors,
      refused,
      wrongClocks,
      metric: async (name) => {
        const { values } = (await registry.getSingleMetric(name)?.get()) ?? { values: [] };
        return values.reduce((sum, { value }) => sum + value, 0);
      },
      spooledFiles: () => readdir(spoolDirectory),
    };
  };
}

const originOf = (upstream: string) => (upstream.startsWith('https:') ? SECURE_ORIGIN : ORIGIN);

function openPool(
  origin: URL,
  { caPem, maxConnections = 64, responseTimeoutMs = 10_000 }: EgressOptions,
  { idleTimeoutMs }: EgressLimits,
): UpstreamPool {
  const limits = { maxConnections, responseTimeoutMs, idleTimeoutMs, onConnect: () => undefined };
  if (origin.protocol === 'https:') {
    return openNegotiatedPool(origin, {
      ...limits,
      tls: { ca: caPem, client: undefined, serverName: AUTHORITY },
    });
  }
  return openUpstreamPool({ ...limits, address: { kind: 'origin', origin }, tls: undefined });
}
