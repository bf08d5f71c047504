/** All enforcement points. The results of each are in `results/`, and their differences in docs/reference/conformance.md. */

import { CADDY } from '../support/points/caddy.ts';
import type { EnforcementPointDriver } from '../support/points/enforcement-point.ts';
import { ENVOY_GRPC } from '../support/points/envoy-grpc.ts';
import { ENVOY_HTTP } from '../support/points/envoy-http.ts';
import { EXPRESS } from '../support/points/express.ts';
import { FASTIFY } from '../support/points/fastify.ts';
import { HONO } from '../support/points/hono.ts';
import { NGINX } from '../support/points/nginx.ts';
import { NODE_HTTP } from '../support/points/node-http.ts';
import { REVERSE_PROXY } from '../support/points/reverse-proxy.ts';
import { TRAEFIK } from '../support/points/traefik.ts';

const OTHERS: readonly EnforcementPointDriver[] = [
  NGINX,
  CADDY,
  TRAEFIK,
  REVERSE_PROXY,
  EXPRESS,
  FASTIFY,
  HONO,
  NODE_HTTP,
];

export const POINTS: readonly EnforcementPointDriver[] = [...ENVOY_GRPC, ...ENVOY_HTTP, ...OTHERS];

/** Of Envoy only the newest version: for what the verifier does, or its callers, whatever Envoy's version. */
export const NEWEST_POINTS: readonly EnforcementPointDriver[] = [
  ...ENVOY_GRPC.slice(-1),
  ...ENVOY_HTTP.slice(-1),
  ...OTHERS,
];
