/** All enforcement points. The results of each are in `results/`, and their differences in docs/conformance.md. */
import type { EnforcementPointDriver } from './enforcement-point.ts';
import { CADDY } from './points/caddy.ts';
import { ENVOY_GRPC } from './points/envoy-grpc.ts';
import { ENVOY_HTTP } from './points/envoy-http.ts';
import { EXPRESS } from './points/express.ts';
import { FASTIFY } from './points/fastify.ts';
import { HONO } from './points/hono.ts';
import { NGINX } from './points/nginx.ts';
import { NODE_HTTP } from './points/node-http.ts';
import { REVERSE_PROXY } from './points/reverse-proxy.ts';
import { TRAEFIK } from './points/traefik.ts';

export const POINTS: readonly EnforcementPointDriver[] = [
  ...ENVOY_GRPC,
  ...ENVOY_HTTP,
  NGINX,
  CADDY,
  TRAEFIK,
  REVERSE_PROXY,
  EXPRESS,
  FASTIFY,
  HONO,
  NODE_HTTP,
];
