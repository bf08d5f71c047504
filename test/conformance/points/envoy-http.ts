/** Envoy with ext_authz over HTTP. */
import { envoyHttp } from '../../e2e/forward-auth/proxies/envoy-http.ts';
import { envoyVersions } from '../../e2e/harness/envoy.ts';
import { forwardAuthPoint } from './forward-auth.ts';

export const ENVOY_HTTP = envoyVersions.map((version) =>
  forwardAuthPoint({
    name: `envoy-http-${version}`,
    protocols: ['HTTP/1.1', 'HTTP/2'],
    kind: envoyHttp(version),
  }),
);
