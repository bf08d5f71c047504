/** Without the check, as docs/operate/observe.md "Take Proofgate out" says: requests arrive, and no caller chooses its subject. */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { CONTEXT_HEADERS, OBSERVED_HEADER, PROOF_HEADER } from '../../../src/protocol/wire-names.ts';
import type { HeaderLine, WireRequest } from '../../../src/tools/conformance/wire/exchange.ts';
import { envoyVersions, startEnvoy } from '../../support/harness/envoy.ts';
import { type ConfigPath, shipped } from '../../support/harness/envoy-config.ts';
import { forwardAuth } from '../../support/harness/traefik.ts';
import { startUpstream, type Upstream } from '../../support/harness/upstream.ts';
import { caddy, startCaddy } from '../../support/proxies/caddy.ts';
import { nginx, startNginx } from '../../support/proxies/nginx.ts';
import { clientsAt, type ForwardProxy, type ProxyParts } from '../../support/proxies/proxy.ts';
import { traefik, traefikWith } from '../../support/proxies/traefik.ts';
import { AUTHORITY } from '../../support/site/routes.ts';
import { cgiName, SMUGGLED_NAMES } from '../../support/site/smuggled-headers.ts';

/** @param version of Envoy over gRPC */
async function startEnvoyWithout(
  version: string,
  { socketPath, upstream }: ProxyParts,
): Promise<ForwardProxy> {
  const filters: ConfigPath = [...shipped.connectionManager, 'http_filters'];
  const envoy = await startEnvoy(version, {
    verifier: { kind: 'unix', path: socketPath },
    upstream,
    edits: [
      {
        path: [...shipped.headerMutation, 'mutations', 'request_mutations'],
        value: [{ remove_on_match: { key_matcher: { contains: 'proofgate' } } }],
      },
      // rbac, then ext_authz before it.
      { path: [...filters, 2] },
      { path: [...filters, 1] },
      { path: [...shipped.connectionManager, 'route_config', 'typed_per_filter_config'] },
    ],
  });
  return { ...clientsAt(envoy.port), logs: async () => '', stop: () => envoy.stop() };
}

/** The API answers the check, with 200. */
const startTraefikWithout = (parts: ProxyParts): Promise<ForwardProxy> =>
  traefikWith(
    {
      file: 'proofgate.yaml',
      path: [...forwardAuth, 'address'],
      value: `http://${parts.upstream.host}:${parts.upstream.port}/healthz`,
    },
    {
      file: 'proofgate.yaml',
      path: [...forwardAuth, 'authResponseHeadersRegex'],
      value: '(?i)^x[^a-z0-9]proofgate[^a-z0-9].*$',
    },
  ).start(parts);

const WITHOUT_CHECK = [
  ...envoyVersions.map((version) => ({
    name: `Envoy ${version}`,
    unavailable: () => undefined,
    start: (parts: ProxyParts) => startEnvoyWithout(version, parts),
  })),
  {
    ...nginx,
    start: (parts: ProxyParts) =>
      startNginx(parts, [
        ['auth_request /proofgate-check;', ''],
        ['ignore_invalid_headers off;', ''],
      ]),
  },
  {
    ...caddy,
    start: (parts: ProxyParts) =>
      startCaddy(parts, [[/\t\tforward_auth [\s\S]*?\n\t\t\}\n/, 'request_header -*Proofgate*\n']]),
  },
  { ...traefik, start: startTraefikWithout },
];

const CONTEXT = new Set([...Object.values(CONTEXT_HEADERS), PROOF_HEADER, OBSERVED_HEADER].map(cgiName));

for (const { name, start, unavailable } of WITHOUT_CHECK) {
  const why = unavailable();
  if (why === undefined) describe(name, () => testWithoutCheck(start));
  else it.skip(`${name}: ${why}`, () => undefined);
}

function testWithoutCheck(start: (parts: ProxyParts) => Promise<ForwardProxy>): void {
  let upstream: Upstream;
  let proxy: ForwardProxy;
  beforeAll(async () => {
    upstream = await startUpstream();
    proxy = await start({ socketPath: '/nowhere/v.sock', upstream, authority: AUTHORITY });
  });
  afterAll(async () => {
    await proxy?.stop();
    await upstream.stop();
  });

  const plain = (headers: readonly HeaderLine[] = []): WireRequest => ({
    ...{ method: 'GET', target: '/v1/orders/4711', authority: AUTHORITY },
    headers: [['accept', 'application/json'], ...headers],
  });
  const arrived = () => upstream.requests.filter(({ url }) => url !== '/healthz');

  it.each(['http1', 'http2'] as const)('requests arrive over %s', async (client) => {
    upstream.clear();
    expect((await proxy[client].send(plain())).status).toBe(200);
    expect(arrived()).toHaveLength(1);
  });

  it('no spelling of a context header arrives', async () => {
    const names = [...SMUGGLED_NAMES, ...[...CONTEXT].flatMap((cgi) => [cgi, cgi.replaceAll('_', '-')])];
    upstream.clear();
    for (const name of names) {
      // Some are refused.
      await proxy.http1.send(plain([[name, 'root']])).catch(() => undefined);
    }
    const taken = arrived().flatMap(({ headers }) =>
      headers.map(([name]) => name).filter((each) => CONTEXT.has(cgiName(each))),
    );
    expect(taken).toEqual([]);
    expect(arrived().length).toBeGreaterThan(0);
  });
}
