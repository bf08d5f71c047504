/** Envoy with ext_authz over HTTP. */

import { envoyVersions } from '../harness/envoy.ts';
import { envoyHttp } from '../proxies/envoy-http.ts';
import { forwardAuthPoint } from './forward-auth.ts';

export const ENVOY_HTTP = envoyVersions.map((version) =>
  forwardAuthPoint({
    name: `envoy-http-${version}`,
    protocols: ['HTTP/1.1', 'HTTP/2'],
    kind: envoyHttp(version),
  }),
);
