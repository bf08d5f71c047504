/** One enforcement point of each kind, in front of an API that counts: Envoy over gRPC, nginx, the reverse proxy and Express. */
import type { HeaderLine, WireAddress } from '../../../src/tools/conformance/wire/exchange.ts';
import { envoyVersions } from '../../support/harness/envoy.ts';
import { startApp } from '../../support/points/middleware-apps.ts';
import { openVerifier, untilReady, usualOptions } from '../../support/points/open-middleware.ts';
import { startGuardedApi } from '../../support/proxies/guarded-api.ts';
import { nginx } from '../../support/proxies/nginx.ts';
import type { SiteFixture } from '../../support/site/site-fixture.ts';
import { startRecordedProxy } from '../proxy/proxy-fixture.ts';

export const POINTS = ['Envoy', 'nginx', 'proxy', 'Express'] as const;
export type PointName = (typeof POINTS)[number];

/** What an API or a handler received. */
export interface Arrived {
  readonly headers: readonly HeaderLine[];
  readonly body: string;
}

export interface GuardedPoint {
  /** Plain HTTP/1.1 for the origin of the site. */
  readonly address: WireAddress;
  /** False where the proxy does not hand on bodies. */
  readonly hasBodies: boolean;
  /** Takes what has arrived since the last call. */
  arrived(): readonly Arrived[];
}

/** Stops with the fixture. */
export async function startPoint(
  name: PointName,
  fixture: SiteFixture,
  bundleDirectory: string,
): Promise<GuardedPoint> {
  if (name === 'Express') {
    const { verifier } = await openVerifier(await usualOptions(fixture.site, bundleDirectory));
    fixture.stops.push(() => verifier.close());
    const { address, close, handled } = await startApp('express', verifier);
    fixture.stops.push(close);
    await untilReady(verifier);
    const arrived = () =>
      handled.splice(0).map(({ body, headers, proof }): Arrived => {
        const lines = Object.entries(headers).map(([key, value]): HeaderLine => [key, String(value)]);
        return { headers: [['x-proofgate-subject', proof.subject], ...lines], body: body.toString() };
      });
    return { address, hasBodies: true, arrived };
  }
  const { address, upstream } = await PROXIES[name](fixture, bundleDirectory);
  const arrived = () => {
    const requests = upstream.requests.map(({ body, headers }) => ({ headers, body: body.toString() }));
    upstream.clear();
    return requests;
  };
  return { address, hasBodies: name !== 'nginx', arrived };
}

const PROXIES = {
  Envoy: async (fixture: SiteFixture, bundleDirectory: string) => {
    const verifier = await fixture.verifier({ bundleDirectory });
    const { envoy, upstream } = await fixture.gateway(envoyVersions.at(-1) ?? '', verifier);
    return { address: { host: envoy.host, port: envoy.port }, upstream };
  },
  nginx: async (fixture: SiteFixture, bundleDirectory: string) => {
    const start = (flags: readonly string[]) => fixture.verifier({ bundleDirectory, flags });
    const { proxy, stop, upstream } = await startGuardedApi(nginx, fixture.site, start);
    fixture.stops.push(stop);
    return { address: { host: proxy.host, port: proxy.port }, upstream };
  },
  proxy: async ({ site, stops }: SiteFixture, bundleDirectory: string) => {
    const { address, stop, upstream } = await startRecordedProxy(site, { bundleDirectory });
    stops.push(stop);
    return { address, upstream };
  },
};
