/** The proxies of a lane: the fast one has the newest of each, the extended one Traefik and the other Envoys. */
import { describe, it } from '@jest/globals';
import { envoyVersions } from '../../support/harness/envoy.ts';
import { byLane } from '../../support/lane.ts';
import { caddy } from '../../support/proxies/caddy.ts';
import { envoyHttp } from '../../support/proxies/envoy-http.ts';
import { nginx } from '../../support/proxies/nginx.ts';
import type { ProxyKind } from '../../support/proxies/proxy.ts';
import { traefik } from '../../support/proxies/traefik.ts';

const envoys = envoyVersions.map(envoyHttp);

const PROXIES = byLane({
  fast: [nginx, caddy, ...envoys.slice(-1)],
  extended: [traefik, ...envoys.slice(0, -1)],
});

/** A suite for each proxy of the lane; one that cannot be started here is skipped, and says why. */
export function describeProxies(what: string, suite: (kind: ProxyKind) => void): void {
  for (const kind of PROXIES) {
    const unavailable = kind.unavailable();
    if (unavailable === undefined) describe(`${what} at ${kind.name}`, () => suite(kind));
    else it.skip(`${what} at ${kind.name}: ${unavailable}`, () => undefined);
  }
}
