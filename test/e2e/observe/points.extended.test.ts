/** Observed routes at the other enforcement points that have them. */
import { CADDY } from '../../support/points/caddy.ts';
import { ENVOY_HTTP } from '../../support/points/envoy-http.ts';
import { EXPRESS } from '../../support/points/express.ts';
import { FASTIFY } from '../../support/points/fastify.ts';
import { HONO } from '../../support/points/hono.ts';
import { NGINX } from '../../support/points/nginx.ts';
import { NODE_HTTP } from '../../support/points/node-http.ts';
import { REVERSE_PROXY } from '../../support/points/reverse-proxy.ts';
import { TRAEFIK } from '../../support/points/traefik.ts';
import { describePoints } from './describe-points.ts';

describePoints([EXPRESS, FASTIFY, HONO, NODE_HTTP, ...ENVOY_HTTP, NGINX, CADDY, TRAEFIK, REVERSE_PROXY]);
// Several processes of one verifier.
describePoints([NGINX], 2);
