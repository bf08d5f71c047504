/** Observed routes at the other enforcement points that have them. */
import { CADDY } from '../../support/points/caddy.ts';
import { ENVOY_HTTP } from '../../support/points/envoy-http.ts';
import { NGINX } from '../../support/points/nginx.ts';
import { REVERSE_PROXY } from '../../support/points/reverse-proxy.ts';
import { TRAEFIK } from '../../support/points/traefik.ts';
import { describePoints } from './describe-points.ts';

describePoints([...ENVOY_HTTP.slice(-1), NGINX, CADDY, TRAEFIK, REVERSE_PROXY]);
